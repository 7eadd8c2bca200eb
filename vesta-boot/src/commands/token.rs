//! `token new`: a fresh token, and its table for the servers.

use std::io::{self, Write};

use serde_json::json;

use super::declared::TokenCommand;
use crate::error::Error;
use crate::output::{Output, Table};
use vesta_net::sha256;

/// Prints a new token, and the table that admits it. The token is not stored, and no settings are
/// needed.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub(crate) fn make_token(command: &TokenCommand, output: Output) -> Result<(), Error> {
    let TokenCommand::New { name, scopes } = command;
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        Error::lasting(
            false,
            format!("the system's random generator failed: {error}"),
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
    // On standard error, apart from the data meant for files and pipes.
    let _ = writeln!(
        io::stderr(),
        "\nThe first line is the token; it is shown only once. Add the rest to the settings file of the \
         servers\n(--config); it takes effect at their next start."
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
