//! The table by REST; tags of segments by the admin listener.

use std::process::Command;

use serde_json::{Value, json};
use ureq::Agent;
use vesta_testkit::programs::{FREE_PORTS, Program};

use crate::{Answer, Arguments, Door, text};

/// The token of all scopes.
pub(crate) const TOKEN: &str = "a-token-of-the-table";
const SHA_256: &str = "0ca8a92dc559d4c89f3386ffb0a2ab2f8fbff60b13b32ef78859d0be3d1bf9f8";

/// A server with tokens, segments and serials in its own folder.
pub(crate) fn served(folder: &std::path::Path) -> Program {
    let settings = folder.join("vesta.toml");
    let token = format!(
        "[[auth.tokens]]\nname = \"table\"\nsha256 = \"{SHA_256}\"\n\
         scopes = [\"generate\", \"read\", \"segments\", \"serials\", \"admin\"]\n"
    );
    std::fs::write(&settings, token).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vesta"));
    command.arg("serve").args(FREE_PORTS).current_dir(folder);
    command.arg("--config").arg(&settings);
    command.args(["--machine-id=1021", "--segment-store=sqlite:tags.db"]);
    // Two servers of one namespace cannot have one machine ID.
    let name = folder.file_name().expect("a name").to_string_lossy();
    command.arg(format!("--namespace={}", name.trim_start_matches('.')));
    command.args(["--serial-store=sqlite:tags.db", "--auto-init=true"]);
    command.env("VESTA_STATE_DIR", folder);
    Program::serve(&mut command).unwrap_or_else(|output| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    })
}

pub(crate) struct Rest {
    agent: Agent,
    server: Program,
    _folder: tempfile::TempDir,
}

impl Rest {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Agent::config_builder().http_status_as_error(false).build();
        Self {
            agent: config.into(),
            server: served(folder.path()),
            _folder: folder,
        }
    }
}

/// Text as part of a URL.
fn encoded(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let byte = |byte: u8| match is_plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The arguments as a query, without some.
fn query(arguments: &Arguments, without: &[&str]) -> String {
    let pairs = arguments
        .iter()
        .filter(|(name, _)| !without.contains(&name.as_str()));
    let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(&text(value))));
    pairs.collect::<Vec<_>>().join("&")
}

impl Door for Rest {
    fn ask(&mut self, operation: &str, arguments: &Arguments) -> Answer {
        let at = |name: &str| encoded(&text(&arguments[name]));
        let (path, body) = match operation {
            "explain" => (
                format!("/v1/ids/{}?{}", at("id"), query(arguments, &["id"])),
                None,
            ),
            "bound" => (format!("/v1/ids:bound?{}", query(arguments, &[])), None),
            "make" => ("/v1/ids:make".to_owned(), Some(arguments)),
            "layout" if at("layout") == "max-peak" => ("/v1/layout".to_owned(), None),
            "layout" => ("/v1/layouts".to_owned(), None),
            "createSegment" => ("/segments".to_owned(), Some(arguments)),
            "createSerial" => ("/v1/serials".to_owned(), Some(arguments)),
            "nextNumbers" | "nextSerials" => {
                let kind = operation.trim_start_matches("next").to_lowercase();
                let kind = kind.replace("numbers", "segments");
                let query = query(arguments, &["tag"]);
                (format!("/v1/{kind}/{}/next?{query}", at("tag")), None)
            }
            "parseSerial" => {
                let query = query(arguments, &["tag"]);
                (format!("/v1/serials/{}/parse?{query}", at("tag")), None)
            }
            _ => return None,
        };
        let listener = match operation {
            "createSegment" => self.server.admin(),
            _ => self.server.address(),
        };
        let (url, token) = (
            format!("http://{listener}{path}"),
            format!("Bearer {TOKEN}"),
        );
        let answer = match body {
            None => self.agent.get(url).header("authorization", token).call(),
            Some(body) => self
                .agent
                .post(url)
                .header("authorization", token)
                .header("content-type", "application/json")
                .send(serde_json::to_string(body).expect("JSON")),
        };
        let mut answer = answer.expect("an answer");
        let body = answer.body_mut().read_to_string().expect("text");
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}"));
        if !answer.status().is_success() {
            return Some(Err((text(&body["kind"]), text(&body["detail"]))));
        }
        Some(Ok(match operation {
            "layout" => of_layout(body, &at("layout")),
            _ => body,
        }))
    }
}

/// The members of a layout that do not depend on the server.
fn of_layout(mut body: Value, name: &str) -> Value {
    if let Some(all) = body["layouts"].as_array() {
        body = all
            .iter()
            .find(|it| it["name"] == name)
            .cloned()
            .unwrap_or(json!({}));
    }
    let members = body.as_object_mut().expect("an object");
    for own in ["machine", "genMethod", "type", "version", "own", "about"] {
        members.remove(own);
    }
    body
}
