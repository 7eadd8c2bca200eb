//! The table on the command line.

use std::process::Command;
use std::rc::Rc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Answer, Arguments, Door, text};

/// The command line in a temporary folder.
pub(crate) struct Line(pub(crate) Rc<TempDir>);

/// An argument's flag, where its name on the command line is another.
fn flag(name: &str) -> String {
    match name {
        "genMethod" => "gen-method".to_owned(),
        "version" => "id-version".to_owned(),
        "maxTags" => "max-tags".to_owned(),
        name => name.to_owned(),
    }
}

impl Door for Line {
    fn ask(&mut self, operation: &str, arguments: &Arguments) -> Answer {
        let (words, first): (&[&str], &[&str]) = match operation {
            "explain" => (&["explain"], &["id"]),
            "bound" => (&["bound"], &["time"]),
            "make" => (&["make"], &[]),
            "layout" => (&["layout", "show"], &["layout"]),
            "createSegment" => (&["segment", "create"], &["tag"]),
            "createSerial" => (&["serial", "create"], &["tag", "pattern"]),
            "nextSerials" => (&["serial", "next"], &["tag"]),
            "parseSerial" => (&["serial", "parse"], &["tag", "serial"]),
            _ => return None,
        };
        // Without a server there is no own machine ID; the layout, not the type, is chosen.
        let own_machine = operation == "make" && !arguments.contains_key("machine");
        if arguments.contains_key("type") || own_machine {
            return None;
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
        command.args(words).args(["-o", "json"]);
        command.args(first.iter().map(|name| text(&arguments[*name])));
        let named = arguments
            .iter()
            .filter(|(name, _)| !first.contains(&name.as_str()));
        command.args(named.map(|(name, value)| format!("--{}={}", flag(name), text(value))));
        // The default of the servers; the command line tries all.
        if operation == "explain" && !arguments.contains_key("format") {
            command.arg("--format=decimal");
        }
        command.env("VESTA_STATE_DIR", self.0.path());
        command.env("VESTA_SEGMENT_STORE", "sqlite:tags.db");
        command.env("VESTA_SERIAL_STORE", "sqlite:tags.db");
        let output = command
            .current_dir(self.0.path())
            .output()
            .expect("the program starts");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = said(&output.stdout);
        let mut lines = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        match output.status.code() {
            Some(0) if arguments.contains_key("count") => {
                Some(Ok(json!({ "serials": lines.collect::<Vec<_>>() })))
            }
            Some(0) => Some(Ok(lines.next().expect("an answer"))),
            code => {
                let code = code.map_or("a signal".to_owned(), |code| format!("exit {code}"));
                Some(Err((code, said(&output.stderr))))
            }
        }
    }

    fn told(&self, kind: &str) -> String {
        match kind {
            "ALREADY_EXISTS" => "exit 1",
            _ => "exit 64",
        }
        .to_owned()
    }
}
