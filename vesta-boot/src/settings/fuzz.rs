//! Settings of arbitrary text: each becomes a configuration or a refusal, and neither shows a
//! password.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use texts::{Changes, damaged, kept};
use urls::{Around, SECRET, with_secret};

use crate::api::Api;
use crate::settings::{Config, settings};
use crate::start::invocation::{Invocation, command};

#[path = "../../../scripts/check/fuzz/texts.rs"]
mod texts;
#[path = "../../../scripts/check/fuzz/urls.rs"]
mod urls;

const SCHEMES: [&str; 8] = [
    "mysql",
    "postgres",
    "redis",
    "rediss",
    "etcd",
    "zookeeper",
    "sqlite",
    "ftp",
];

/// Truncates the file last: some file systems sync a file that was emptied first.
fn write(path: &Path, bytes: &[u8]) {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    let mut file = file.expect("a file");
    file.write_all(bytes).expect("room");
    file.set_len(bytes.len() as u64).expect("room");
}

/// Everything that a program may show, and its configuration if it is valid.
type Shown = (String, Option<Config>);

/// Runs a program with these arguments up to its configuration.
fn shown(apis: &[Api], args: &[String]) -> Shown {
    let raw = match Invocation::read("vesta", apis, args) {
        Ok(Invocation::Run(raw) | Invocation::PrintConfig(raw)) => raw,
        Ok(other) => return (format!("{other:?}"), None),
        Err(error) => return (format!("{error} {error:?}"), None),
    };
    match Config::check(&raw) {
        Ok(config) => (
            format!("{raw:?} {config:?} {}", config.print(&raw)),
            Some(config),
        ),
        Err(error) => (format!("{raw:?} {error} {error:?}"), None),
    }
}

fn with_file(apis: &[Api], path: &Path) -> Shown {
    shown(apis, &["--config".to_owned(), path.display().to_string()])
}

/// A file that is accepted prints as a file that is accepted, and prints the same again.
fn check_file(folder: &Path, text: &[u8]) {
    let path = folder.join("vesta.toml");
    for apis in [[Api::Grpc], [Api::Rest]] {
        write(&path, text);
        let Some(config) = with_file(&apis, &path).1 else {
            continue;
        };
        let args = ["--config".to_owned(), path.display().to_string()];
        let Ok(Invocation::Run(raw)) = Invocation::read("vesta", &apis, &args) else {
            panic!("it was read before")
        };
        let printed = config.print(&raw);
        if printed.contains("***") {
            continue; // a password is missing
        }
        write(&path, printed.as_bytes());
        let Ok(Invocation::Run(raw)) = Invocation::read("vesta", &apis, &args) else {
            panic!("it does not parse: {printed}")
        };
        let again = Config::check(&raw).unwrap_or_else(|error| panic!("{error}: {printed}"));
        let values = |text: &str| -> Vec<String> {
            text.lines()
                .map(|line| line.split("  #").next().unwrap_or("").trim().into())
                .collect()
        };
        assert_eq!(values(&again.print(&raw)), values(&printed));
    }
}

fn inputs() -> Vec<Vec<u8>> {
    kept(env!("CARGO_MANIFEST_DIR"), "config")
}

#[test]
fn files_of_any_text() {
    let folder = tempfile::tempdir().expect("a folder");
    for input in inputs() {
        check_file(folder.path(), &input);
    }
    bolero::check!()
        .with_iterations(100)
        .for_each(|text: &[u8]| check_file(folder.path(), text));
}

#[test]
fn files_that_are_damaged() {
    let (folder, inputs) = (tempfile::tempdir().expect("a folder"), inputs());
    bolero::check!().with_iterations(400).with_type().for_each(
        |(which, changes): &(u16, Changes)| {
            // Only a few changes, so that some files stay valid.
            let few = changes
                .iter()
                .take(usize::from(which % 5))
                .copied()
                .collect();
            check_file(folder.path(), &damaged(&inputs, *which, &few));
        },
    );
}

/// Where and how a password was typed: setting, way, and surrounding text.
type Typed = (u8, u8, Around);

fn check_secret(
    folder: &Path,
    (setting, way, around): &Typed,
    show: fn(&[Api], &[String]) -> Shown,
) {
    let settings = settings();
    let all: Vec<_> = settings.get_arguments().collect();
    let arg = all[usize::from(*setting) % all.len()];
    let (name, flag) = (
        arg.get_id().as_str(),
        format!("--{}", arg.get_long().expect("a flag")),
    );
    // No argument of a program has a NUL.
    let url = with_secret(&SCHEMES, around).replace('\0', "0");
    let is_path = name == "state_dir" || name.contains("tls.");
    if is_path && !url.contains("://") {
        return; // indistinguishable from a path
    }
    let quoted = toml::Value::from(url.as_str()).to_string();
    let path = folder.join("vesta.toml");
    let by_file = |text: String| {
        write(&path, text.as_bytes());
        vec!["--config".to_owned(), path.display().to_string()]
    };
    let args = match way % 8 {
        0..=2 => by_file(format!("{} = {quoted}\n", name)),
        3 => by_file(format!("{} = {url}\n", name)),
        4 => by_file(format!("[machine]\nstore = {quoted}\n{} = 1\n", name)),
        5 => vec![flag.clone(), url.clone()],
        6 => vec![format!("{}={url}", flag.clone())],
        _ => vec![
            "--machine-store".to_owned(),
            url.clone(),
            flag.clone(),
            "x".to_owned(),
        ],
    };
    for apis in [[Api::Grpc], [Api::Rest]] {
        let said = show(&apis, &args).0;
        assert!(!said.contains(SECRET), "{args:?} {url:?}: {said}");
    }
}

#[test]
fn no_setting_shows_a_password() {
    let folder = tempfile::tempdir().expect("a folder");
    bolero::check!()
        .with_iterations(1_000)
        .with_type()
        .for_each(|typed: &Typed| check_secret(folder.path(), typed, shown));
}

/// clap's error text, unfiltered.
fn planted(apis: &[Api], args: &[String]) -> Shown {
    match command("vesta", apis)
        .no_binary_name(true)
        .try_get_matches_from(args)
    {
        Err(error) => (error.render().to_string(), None),
        Ok(_) => (String::new(), None),
    }
}

#[test]
#[should_panic(expected = "test failed")]
fn a_usage_that_quotes_what_was_typed_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    bolero::check!()
        .with_iterations(1_000)
        .with_shrink_time(std::time::Duration::ZERO)
        .with_type()
        .for_each(|typed: &Typed| check_secret(folder.path(), typed, planted));
}
