//! `token new`: a fresh token, and its table for the servers.

use std::io::{self, Write};

use serde_json::json;

use super::declared::TokenCommand;
use crate::commands::output::{Output, Table};
use crate::net::sha256;
use crate::start::error::Error;

/// Prints a new token, and the table that lets it in. It is stored nowhere, and needs no settings.
///
/// # Errors
/// [`Error`] with one sentence that says what to do.
pub(crate) fn make_token(command: &TokenCommand, output: Output) -> Result<(), Error> {
    let TokenCommand::New { name, scopes } = command;
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        Error::lasting(
            false,
            format!("the system gives no random numbers: {error}"),
        )
    })?;
    let token = format!("vesta_{}", hex::encode(random));
    let sha256 = hex::encode(sha256(token.as_bytes()));
    let text = format!("{token}\n\n{}", toml(name, &sha256, scopes));
    let json = json!({ "name": name, "token": token, "sha256": sha256, "scopes": scopes });
    let mut table = Table::new(["name", "token", "sha256", "scopes"]);
    table.row([
        (&**name).into(),
        token.into(),
        sha256.into(),
        scopes.join(" ").into(),
    ]);
    let text = output.pick(&text, &json, &table.render(Output::Csv));
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_err(|error| Error::lasting(false, format!("cannot print the token: {error}")))?;
    if output != Output::Text {
        return Ok(());
    }
    // Not among what is meant for files and pipes.
    let _ = writeln!(
        io::stderr(),
        "\nThe first line is the token; it is shown this once. The rest goes into the file that the \
         servers\nread (--config), and holds from their next start on."
    );
    Ok(())
}

fn toml(name: &str, sha256: &str, scopes: &[String]) -> String {
    let scopes: Vec<_> = scopes.iter().map(|scope| format!("\"{scope}\"")).collect();
    format!(
        "[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\nscopes = [{}]\n",
        scopes.join(", ")
    )
}
