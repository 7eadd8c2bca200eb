//! README.md, in both languages: a reader who types its examples sees what it shows.

use std::process::Command;

use tempfile::TempDir;

use vesta_testkit::programs::Program;

use crate::program::{PROGRAM, prepare};

pub(crate) const READMES: [&str; 2] =
    [include_str!("../../../README.md"), include_str!("../../../README.zh-CN.md")];

/// The program in the examples; `$0`, which is built already, takes its place.
const PROGRAM_IN_README: &str = "cargo run --release --";

/// The listeners: flag, variable and default. Free ports take the place of all that are shown.
const LISTENERS: [(&str, &str, &str); 3] = [
    ("--listen ", "VESTA_LISTEN", "127.0.0.1:8088"),
    ("--admin-listen ", "VESTA_ADMIN_LISTEN", "127.0.0.1:8089"),
    ("--grpc-listen ", "VESTA_GRPC_LISTEN", "127.0.0.1:50051"),
];

/// The home of the reader in the examples.
const HOME_IN_README: &str = "/home/ann";

/// The numbers that differ from start to start: all in these lines, and those as long as an ID.
const LINES_THAT_VARY: [&str; 2] = ["  runs out ", "  machine ID "];
const DIGITS_OF_AN_ID: usize = 16;

/// The section with an example; its title is another in each language.
fn section<'a>(readme: &'a str, example: &str) -> &'a str {
    readme.split("\n## ").find(|section| section.contains(example)).expect("it is shown")
}

/// The code blocks of a section: the language, and the lines.
fn blocks(section: &str) -> impl Iterator<Item = (&str, String)> {
    let blocks = section.split("\n```").skip(1).step_by(2);
    blocks
        .map(|block| block.split_once('\n').expect("a language"))
        .map(|(language, lines)| (language, lines.replace("\\\n", "")))
}

/// A reader in an empty folder, who starts each server in a terminal of its own.
struct Reader {
    folder: TempDir,
    servers: Vec<Program>,
    /// Each address as it is shown, and as it is here.
    addresses: Vec<(String, String)>,
    compared: usize,
}

impl Reader {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self { folder, servers: Vec::new(), addresses: Vec::new(), compared: 0 }
    }

    /// Types every line of the section's sh blocks and compares what is printed with what is shown:
    /// in a comment behind or below the line, or in the text block that follows.
    fn follow(&mut self, section: &str) {
        let mut printed = String::new();
        for (language, lines) in blocks(section) {
            if language == "text" {
                assert_eq!(marked(&printed), marked(&lines));
                self.compared += 1;
                continue;
            }
            assert_eq!(language, "sh");
            for line in lines.lines() {
                let (typed, shown) = line.split_once("# ").unwrap_or((line, ""));
                if !typed.is_empty() {
                    printed = self.types(typed.trim_end());
                }
                if shown.is_empty() {
                    continue;
                }
                let (printed, shown) = (marked(&printed), marked(shown));
                // A word about the answer may follow it.
                let rest = shown.strip_prefix(printed.trim_end());
                let same = rest
                    .is_some_and(|rest| rest.trim().is_empty() || rest.starts_with([',', '，']));
                assert!(same, "{line}\nprinted: {printed}");
                self.compared += 1;
            }
        }
    }

    /// Types one line; gives what is printed, until a server is ready or the program has ended.
    fn types(&mut self, line: &str) -> String {
        assert!(!line.ends_with('&'), "a server that is not waited for: {line}");
        let mut typed = line.replace(PROGRAM_IN_README, "\"$0\"");
        let mut listens = Vec::new();
        for (flag, _, default) in LISTENERS {
            let shown = typed
                .split_once(flag)
                .map_or(default, |(_, rest)| rest.split(' ').next().expect("an address"));
            listens.push(shown.to_owned());
            typed = typed.replace(&format!("{flag}{shown}"), &format!("{flag}127.0.0.1:0"));
        }
        for (shown, real) in &self.addresses {
            typed = typed.replace(shown, real);
        }
        let script = format!("exec {typed}");
        let mut command =
            prepare(Command::new("sh"), self.folder.path(), &["-c", &script, &vesta()]);
        // Whose reader is not who runs the tests.
        for name in ["VESTA_STATE_DIR", "XDG_STATE_HOME", "STATE_DIRECTORY"] {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path());
        command.env("no_proxy", "*").envs(LISTENERS.map(|(_, name, _)| (name, "127.0.0.1:0")));
        match Program::serve(&mut command) {
            Ok(server) => {
                let home = self.folder.path().display().to_string();
                let mut printed = server.said().replace(&home, HOME_IN_README);
                let real = [server.address(), server.admin()].into_iter().chain(server.grpc());
                for (shown, real) in listens.into_iter().zip(real) {
                    let taken = self.addresses.iter().any(|(before, _)| *before == shown);
                    assert!(!taken, "{line}\n{shown} is taken by a server from above");
                    printed = printed.replace(&real.to_string(), &shown);
                    self.addresses.push((shown, real.to_string()));
                }
                self.servers.push(server);
                printed
            }
            Err(ended) => {
                assert!(ended.status.success(), "{line}\n{ended:?}");
                String::from_utf8(ended.stdout).expect("text")
            }
        }
    }
}

/// The text with a mark in place of each number that varies.
fn marked(text: &str) -> String {
    let mark = |line: &str| {
        let least = if LINES_THAT_VARY.iter().any(|start| line.starts_with(start)) {
            1
        } else {
            DIGITS_OF_AN_ID
        };
        let words = line.split(' ').map(|word| if digits(word) >= least { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(mark).collect::<Vec<_>>().join("\n")
}

/// The program `vesta`, which is built beside `vesta-rest`.
fn vesta() -> String {
    let path = std::path::Path::new(PROGRAM).with_file_name("vesta");
    assert!(path.exists(), "build it first: cargo build -p vesta-cli");
    path.display().to_string()
}

/// The length of a number; 0 of another word.
fn digits(word: &str) -> usize {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.len() } else { 0 }
}

#[test]
fn the_first_example_shows_what_it_prints_and_each_id_is_the_one_explained() {
    for readme in READMES {
        let section = section(readme, "/genid'");
        let mut reader = Reader::new();
        reader.follow(section);
        assert_eq!(reader.compared, 3);

        let (_, machine) = section.split_once("machine ID  ").expect("it is printed");
        let machine = machine.split(' ').next().expect("a number");
        let ids: Vec<_> = section
            .split(|c: char| !c.is_ascii_digit())
            .filter(|number| number.len() >= DIGITS_OF_AN_ID)
            .collect();
        let [first, made, explained] = ids[..] else { panic!("{ids:?}") };
        assert_eq!(made, explained);
        assert!(first < made, "{first} was made before {made}");
        for id in ids {
            let answer = reader.types(&format!("curl 'http://127.0.0.1:8088/expid?id={id}'"));
            assert!(answer.contains(&format!("\"machine\":{machine},")), "{id}: {answer}");
        }
    }
}

#[test]
fn the_segment_example_works_as_it_is_beside_the_first_one() {
    for readme in READMES {
        let mut reader = Reader::new();
        reader.types(&format!("{PROGRAM_IN_README} serve"));
        reader.follow(section(readme, "segment create"));
        assert_eq!((reader.compared, reader.servers.len()), (3, 2));
    }
}
