//! `token new`: a fresh token, and its table for the servers.

use std::io::{self, Write};

use super::TokenCommand;
use crate::error::Error;
use crate::net::sha256;

/// Prints a new token, and the table that lets it in. It is stored nowhere, and needs no settings.
///
/// # Errors
/// [`Error`] with one sentence that says what to do.
pub(crate) fn make_token(TokenCommand::New { name, scopes }: &TokenCommand) -> Result<(), Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        Error::lasting(false, format!("the system gives no random numbers: {error}"))
    })?;
    let token = format!("vesta_{}", hex::encode(random));
    let text = format!("{token}\n\n{}", table(name, &token, scopes));
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_err(|error| Error::lasting(false, format!("cannot print the token: {error}")))?;
    // Not among what is meant for files and pipes.
    let _ = writeln!(
        io::stderr(),
        "\nThe first line is the token; it is shown this once. The rest goes into the file that the \
         servers\nread (--config), and holds from their next start on."
    );
    Ok(())
}

fn table(name: &str, token: &str, scopes: &[String]) -> String {
    let scopes: Vec<_> = scopes.iter().map(|scope| format!("\"{scope}\"")).collect();
    format!(
        "[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\nscopes = [{}]\n",
        hex::encode(sha256(token.as_bytes())),
        scopes.join(", ")
    )
}
