//! The command line as a new user meets it: help, typing errors, options before and after a command.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, command: &mut Command) -> (String, String, Option<i32>) {
    let done = command
        .current_dir(folder)
        .env_clear()
        .env("VESTA_STATE_DIR", folder.join("state"))
        .output()
        .expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(done.stdout), text(done.stderr), done.status.code())
}

pub(crate) fn vesta(folder: &Path, args: &[&str]) -> (String, String, Option<i32>) {
    run(folder, Command::new(env!("CARGO_BIN_EXE_vesta")).args(args))
}

/// The names under `Commands:` in a help text.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = lines.take_while(|line| line.starts_with("  "));
    // Continued lines are indented further.
    let names = rows
        .filter(|row| !row.starts_with("   "))
        .filter_map(|row| row.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Each command, keyed by its words, with its help.
fn tree(folder: &Path) -> BTreeMap<Vec<String>, String> {
    let (mut tree, mut open) = (BTreeMap::new(), vec![Vec::<String>::new()]);
    while let Some(path) = open.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let (help, error, code) = vesta(folder, &[&words[..], &["--help"]].concat());
        assert_eq!((error.as_str(), code), ("", Some(0)), "{path:?}");
        let usage = format!("Usage: {}", [&["vesta"], &words[..]].concat().join(" "));
        assert!(help.contains(&usage), "{path:?}: {help}");
        open.extend(
            commands(&help)
                .into_iter()
                .map(|name| [&path[..], &[name]].concat()),
        );
        tree.insert(path, help);
    }
    assert!(tree.len() > 40, "{}", tree.len());
    tree
}

#[test]
fn help_lists_the_main_commands_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let (help, ..) = vesta(folder.path(), &["--help"]);
    let listed = commands(&help);
    assert_eq!(listed[..3], ["serve", "gen", "explain"]);
    for name in ["store", "segment", "serial", "token"] {
        assert!(listed.iter().any(|it| it == name), "{name}");
    }
}

#[test]
fn each_command_has_help_and_refuses_unknown_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (path, help) in tree(folder) {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let (same, ..) = vesta(folder, &[&["help"], &words[..]].concat());
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        assert_eq!(first(&same), first(&help), "{path:?}");
        let (said, error, code) = vesta(folder, &[&words[..], &["--no-such-flag"]].concat());
        assert_eq!((said.as_str(), code), ("", Some(64)), "{path:?}: {error}");
        assert!(error.contains("--no-such-flag"), "{path:?}: {error}");
        for name in commands(&help) {
            let typed = format!("{name}x");
            let (_, error, code) = vesta(folder, &[&words[..], &[&typed]].concat());
            assert_eq!(code, Some(64), "{path:?} {typed}: {error}");
            if path == ["audit"] {
                continue; // it takes an ID in that position
            }
            assert!(
                error.contains("similar") && error.contains(&format!("'{name}'")),
                "{error}"
            );
        }
    }
}

#[test]
fn each_command_named_in_the_documents_exists() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = tree(folder.path());
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["", "docs/use", "docs/operate", "docs/move", "docs/inside"];
    let of = |folder: &str| std::fs::read_dir(top.join(folder)).expect("a folder");
    let files = folders.into_iter().flat_map(of);
    let files = files.map(|file| file.expect("a file").path());
    let mut named = 0;
    for file in files.filter(|file| file.extension().is_some_and(|it| it == "md")) {
        let text = std::fs::read_to_string(&file).expect("text");
        // Code is between single or triple backticks.
        for line in text.split('`').skip(1).step_by(2).flat_map(str::lines) {
            for part in line.split("vesta ").skip(1) {
                let is_word = |word: &&str| {
                    !word.starts_with('-')
                        && word.bytes().all(|it| it == b'-' || it.is_ascii_lowercase())
                };
                let words: Vec<_> = part.split(' ').take_while(is_word).collect();
                if words.first().is_some_and(|word| word.starts_with("vesta-")) {
                    continue; // a user of this name
                }
                let mut path = Vec::new();
                for word in words.into_iter().filter(|word| *word != "help") {
                    if word.is_empty() || commands(&tree[&path]).is_empty() {
                        break;
                    }
                    path.push(word.to_owned());
                    assert!(tree.contains_key(&path), "{}: vesta {part}", file.display());
                    named += 1;
                }
            }
        }
    }
    assert!(named > 150, "{named} commands are named");
}

#[test]
fn each_example_of_the_help_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("orders.csv"), "id,name\n1785223470585921538,x\n").expect("a file");
    std::fs::write(at.join("vesta.toml"), "layout = \"js-safe\"\n").expect("a file");
    let shop = rusqlite::Connection::open(at.join("shop.db")).expect("a database");
    let sql = "CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (2407837855670862845)";
    shop.execute_batch(sql).expect("a table");
    let mut examples = Vec::new();
    for help in tree(at).into_values() {
        // Help texts shared with other programs omit the program's name.
        let is_example = |line: &'_ str| {
            let shared = line.strip_prefix("Example: ");
            line.strip_prefix("  vesta ")
                .or(shared)
                .map(|rest| format!("vesta {rest}"))
        };
        examples.extend(help.lines().filter_map(is_example));
    }
    examples.sort();
    examples.dedup();
    assert!(examples.len() > 12, "{examples:?}");
    assert!(
        examples
            .iter()
            .any(|it| it.starts_with("vesta serial create")),
        "{examples:?}"
    );
    let program = Path::new(env!("CARGO_BIN_EXE_vesta"))
        .parent()
        .expect("a folder");
    let path = format!("{}:/usr/bin:/bin", program.display());
    for example in examples {
        let serves = example.contains("vesta serve");
        let shows = serves && !example.contains("--print-config");
        let line = if shows {
            format!("{example} --print-config")
        } else {
            example.clone()
        };
        let line = line.replace("/etc/vesta.toml", "vesta.toml");
        let mut shell = Command::new("/bin/sh");
        let done = shell
            .args(["-c", &line])
            .current_dir(at)
            .env_clear()
            .envs([("PATH", path.as_str()), ("HOME", "/nonexistent")])
            .env("VESTA_STATE_DIR", at.join("state"))
            .env("VESTA_SERIAL_STORE", "sqlite:serials.db")
            .output()
            .expect("a shell");
        let error = String::from_utf8_lossy(&done.stderr);
        // A command may answer no, but must not fail.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{line}: {error}");
    }
}

#[test]
fn options_are_accepted_before_and_after_the_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let json = |args: &[&str]| {
        let (said, error, code) = vesta(at, args);
        assert_eq!(code, Some(0), "{error}");
        said
    };
    let expected = json(&["layout", "show", "snowflake", "-o", "json"]);
    assert!(expected.starts_with('{'), "{expected}");
    assert_eq!(
        json(&["-o", "json", "layout", "show", "snowflake"]),
        expected
    );
    assert_eq!(
        json(&["layout", "--output", "json", "show", "snowflake"]),
        expected
    );

    std::fs::write(at.join("own.toml"), "namespace = \"orders\"\n").expect("a file");
    json(&["store", "init", "--config", "own.toml"]);
    let expected = json(&["store", "show", "--config", "own.toml", "-o", "csv"]);
    assert_eq!(
        json(&["--config", "own.toml", "-o", "csv", "store", "show"]),
        expected
    );
    assert_eq!(
        json(&["store", "-c", "own.toml", "show", "-o", "csv"]),
        expected
    );
    let shown = json(&["-c", "own.toml", "store", "show", "-o", "json"]);
    assert!(shown.contains("\"namespace\":\"orders\""), "{shown}");
    let printed = json(&["-c", "own.toml", "serve", "rest", "--print-config"]);
    assert!(printed.contains("namespace = \"orders\""), "{printed}");
}

#[test]
fn an_option_without_effect_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for args in [
        &["-c", "x.toml", "explain", "5"][..],
        &["explain", "5", "--config", "x.toml"],
        &["serve", "-o", "json"],
        &["-o", "csv", "completions", "bash"],
        &["audit", "table", "x.csv", "--order-by", "id"],
        &["audit", "table", "-", "--table", "orders"],
        &["audit", "table", "-", "--config", "x.toml"],
        &["explain", "5", "--made", "2024"],
    ] {
        let (said, error, code) = vesta(folder.path(), args);
        assert_eq!((said.as_str(), code), ("", Some(64)), "{args:?}: {error}");
        assert!(error.starts_with("vesta: "), "{args:?}: {error}");
    }
}

#[test]
fn errors_name_the_program_that_was_called() {
    let folder = tempfile::tempdir().expect("a folder");
    for front in [
        &["serve"][..],
        &["serve", "rest"],
        &["serve", "grpc"],
        &["store", "show"],
    ] {
        let (_, error, code) = vesta(folder.path(), &[front, &["--machine-region", "9"]].concat());
        assert_eq!(code, Some(64), "{front:?}");
        assert!(error.starts_with("vesta: "), "{front:?}: {error}");
    }
}

#[test]
fn a_misplaced_secret_is_not_repeated_but_other_text_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for args in [
        &["gen", "--server", "http://user:s3cret@host:8088"][..],
        &["gen", "--server", "mysql://user:s3cret@host/db"],
        &["bench", "--server", "http://host:8088/?token=s3cret"],
        &["top", "https://s3cret@host:8089"],
        &[
            "store",
            "import",
            "leaf",
            "--from",
            "ftp://user:s3cret@host/db",
        ],
        &["store", "mysql://user:s3cret@host/db"],
        &["mysql://user:s3cret@host/db"],
        &["explain", "5", "--made", "mysql://user:s3cret@host/db"],
        &[
            "audit",
            "table",
            "--from",
            "mysql://user:s3cret@host/db?x",
            "--table",
            "a",
            "--column",
            "b",
        ],
        &["layout", "show", "mysql://user:s3cret@host/db"],
        &["--no=mysql://user:s3cret@host/db", "gen"],
        &["explain", "mysql://user:s3cret@host/db"],
        &["bound", "mysql://user:s3cret@host/db"],
        &["plan", "overlap", "mysql://user:s3cret@host/db", "uid"],
    ] {
        let (said, error, code) = vesta(folder.path(), args);
        assert_eq!(code, Some(64), "{args:?}: {said} {error}");
        assert!(
            !error.contains("s3cret") && !said.contains("s3cret"),
            "{args:?}: {said} {error}"
        );
    }
    let (_, error, code) = vesta(folder.path(), &["gen", "--server", "127.0.0.1:8088"]);
    assert_eq!(code, Some(64));
    assert!(error.contains("'127.0.0.1:8088'"), "{error}");
    assert!(
        error.contains("must begin with http:// or https://"),
        "{error}"
    );
}

#[test]
fn json_has_numbers_and_camel_case_keys_in_the_commands_of_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let store = "--segment-store=sqlite:tags.db";
    let serials = "--serial-store=sqlite:tags.db";
    let json = |args: &[&str]| -> serde_json::Value {
        let (said, error, code) = vesta(at, &[args, &["-o", "json"]].concat());
        assert_eq!(code, Some(0), "{args:?}: {error}");
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{args:?}: {error}: {said}"))
    };
    assert!(json(&["store", "init"])["report"].is_string());
    vesta(at, &["gen"]);
    let shown = json(&["store", "show"]);
    let record = &shown["records"][0];
    assert!(
        record["machine"].is_u64() && record["pid"].is_u64() && record["claim"].is_u64(),
        "{shown}"
    );
    assert!(
        record["bound"].is_string() && record["lastChange"].is_string(),
        "{shown}"
    );
    assert_eq!(
        json(&["segment", "create", "orders", "--step", "100", store]),
        serde_json::json!({"tag": "orders", "step": 100, "first": "1", "created": true})
    );
    let list = json(&["segment", "list", store]);
    assert_eq!(list["tags"][0]["tableStep"], 100, "{list}");
    assert_eq!(list["tags"][0]["nextInStore"], "1", "{list}");
    json(&[
        "serial", "create", "bills", "B-{n:4}", "--reset", "never", serials,
    ]);
    assert_eq!(
        json(&["serial", "next", "bills", serials])["serial"],
        "B-0001"
    );
    assert_eq!(
        json(&["serial", "parse", "bills", "B-0001", serials])["counter"],
        "1"
    );
    assert_eq!(
        json(&["serial", "list", serials])["tags"][0]["reset"],
        "never"
    );
    let token = json(&["token", "new", "--name", "x"]);
    assert!(
        token["token"].is_string() && token["scopes"].is_array(),
        "{token}"
    );
}

#[test]
fn json_has_numbers_in_a_plans_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (said, _, code) = vesta(
        folder.path(),
        &["plan", "overlap", "snowflake", "cosid", "-o", "json"],
    );
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        json["old"]["machine"].is_u64() && json["id"].is_string(),
        "{said}"
    );
}

#[test]
fn a_machine_id_without_a_record_is_no() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    vesta(at, &["store", "init"]);
    let (said, error, code) = vesta(at, &["store", "free", "99", "--yes"]);
    assert_eq!((said.as_str(), code), ("", Some(1)), "{error}");
    assert!(
        error.starts_with("vesta: machine ID 99 has no record"),
        "{error}"
    );
}

#[test]
fn tables_fit_eighty_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    vesta(at, &["gen"]);
    let store = "--segment-store=sqlite:tags.db";
    let text = "a description that is so long that it does not fit into the rest of the line";
    vesta(
        at,
        &[
            "segment",
            "create",
            "orders",
            "--step",
            "100",
            "--description",
            text,
            store,
        ],
    );
    for args in [
        &["layout", "list"][..],
        &["layout", "show", "max-peak"],
        &["store", "show"],
        &["segment", "list", store],
        &["doctor"],
    ] {
        let (said, error, _) = vesta(at, args);
        assert!(!said.is_empty(), "{args:?}: {error}");
        for line in said.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
}

#[test]
fn top_exits_with_69_if_no_server_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let (said, error, code) = vesta(folder.path(), &["top", &url]);
    assert_eq!((said.as_str(), code), ("", Some(69)), "{error}");
    assert!(error.contains("does not answer"), "{error}");
}
