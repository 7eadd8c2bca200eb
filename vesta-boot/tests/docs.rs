//! Documents generated from the settings: the entries of docs/operate/settings.md, docs/vesta.example.toml and
//! docs/vesta.schema.json.
//! With `UPDATE_DOCS=1` the tests write them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Arg;
use vesta_boot::settings::{SCHEMA, schema, settings};
use vesta_boot::{Api, command};
use vesta_service::lease::Timing;
use vesta_store::StoreUrl;

/// Compares a document in docs/ with its expected text, or writes it.
fn compare(file: &str, expected: &str) {
    compare_at(&format!("docs/{file}"), expected);
}

/// Compares a file of the repository with its expected text, or writes it.
fn compare_at(file: &str, expected: &str) {
    let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).expect("a document");
    }
    let found = fs::read_to_string(&path).expect("a document");
    let line = found
        .lines()
        .zip(expected.lines())
        .find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{file} is out of date; run with UPDATE_DOCS=1: {line:#?}"
    );
}

fn default(arg: &Arg) -> Option<String> {
    arg.get_default_values()
        .first()
        .map(|text| text.to_string_lossy().into_owned())
}

/// Paragraphs of the help, without the names, and the example.
fn help(arg: &Arg) -> (String, Option<String>) {
    let long = arg
        .get_long_help()
        .expect("every setting has help")
        .to_string();
    let mut paragraphs: Vec<_> = long.split("\n\n").collect();
    let names = paragraphs.pop().expect("the names come last");
    assert!(names.ends_with(']'), "{long}");
    let example = paragraphs
        .last()
        .and_then(|last| last.strip_prefix("Example: "));
    if example.is_some() {
        paragraphs.pop();
    }
    let sentences = paragraphs
        .iter()
        .map(|paragraph| format!("{}.", paragraph.trim_end_matches('.')));
    (
        sentences.collect::<Vec<_>>().join(" "),
        example.map(str::to_owned),
    )
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for arg in settings().get_arguments() {
        let heading = arg.get_help_heading().expect("a heading");
        let at = sections.iter().position(|(name, _)| *name == heading);
        let at = at.unwrap_or_else(|| {
            sections.push((heading, format!("## {heading}\n\n")));
            sections.len() - 1
        });
        let (name, flag) = (arg.get_id(), arg.get_long().expect("a flag"));
        let env = arg
            .get_env()
            .and_then(|env| env.to_str())
            .expect("a variable");
        let default = default(arg).filter(|default| !default.is_empty());
        let default = default.map_or(String::new(), |default| format!(" · `{default}`"));
        sections[at].1 += &format!(
            "### `{name}`\n`--{flag}` · `{env}`{default}<br>{}\n",
            help(arg).0
        );
    }
    let entries: Vec<_> = sections.into_iter().map(|(_, entries)| entries).collect();
    let text = page("operate/settings.md");
    let start = text.find("## ").expect("the first section");
    let end = text.find("\n## Only").expect("the last section");
    compare(
        "operate/settings.md",
        &format!("{}{}{}", &text[..start], entries.join("\n"), &text[end..]),
    );
}

/// Comment lines of at most 100 characters.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one");
        if last.chars().count() + 1 + word.chars().count() > 100 {
            lines.push(format!("# {word}"));
        } else {
            *last += &format!(" {word}");
        }
    }
    lines.join("\n") + "\n"
}

const HEAD: &str = "\
# Settings of `vesta serve`.
#
# Each setting is shown with its default, or with an example where it has none, so that this file changes
# nothing as it is. Remove the first `#` of a line to change it. Flags and environment variables win over
# the file; `vesta serve --config FILE --print-config` shows the result with the origin of each value.
";

const TAIL: &str = r#"
# Tokens of callers, a table for each. `vesta token new --name X` prints a token and its table.
# Without tokens, callers need none. Scopes: generate, read, segments, serials, metrics, admin.
#[[auth.tokens]]
#name = "orders"
#sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#scopes = ["generate", "read"]

# A custom layout, instead of `layout` above. Widths are in bits; all together at most 64, time and
# sequence together at most 62. The widths of version, type and genMethod are 0 if left out.
#[layout.custom]
#version_bits = 1
#type_bits = 0
#gen_method_bits = 0
#time_bits = 41
#seq_bits = 12
#machine_bits = 10
# Order of the lower fields, from the top: time-seq-machine (the default) or time-machine-seq.
#order = "time-machine-seq"
# Unit of the time field: second, ten-millis or millisecond.
#unit = "millisecond"
# Moment at which the time field is 0: RFC 3339 with an offset, or milliseconds since 1970.
#epoch = "2026-01-01T00:00:00Z"
"#;

#[test]
fn the_example_file_is_up_to_date() {
    let settings = settings();
    let mut settings: Vec<_> = settings.get_arguments().collect();
    let table = |arg: &Arg| {
        arg.get_id()
            .as_str()
            .split_once('.')
            .map_or("", |it| it.0)
            .to_owned()
    };
    settings.sort_by_key(|arg| table(arg));
    let mut text = format!("#:schema {SCHEMA}\n{HEAD}");
    let mut current = String::new();
    for arg in settings {
        let (help, example) = help(arg);
        let value = default(arg).or(example).expect("a default or an example");
        if table(arg) != current {
            current = table(arg);
            text += &format!("\n#[{current}]");
        }
        let name = arg.get_id().as_str();
        let name = name.strip_prefix(&format!("{current}.")).unwrap_or(name);
        let is_bare = value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
        let value = if is_bare {
            value
        } else {
            format!("\"{value}\"")
        };
        let help = comment(&help);
        text += &format!("\n{help}#{name} = {value}\n");
    }
    compare("vesta.example.toml", &(text + TAIL));
}

#[test]
fn the_schema_of_the_settings_file_is_up_to_date() {
    compare("vesta.schema.json", &schema());
}

/// The first page of a crate's documentation as a README: links to items replaced by their names. Its examples
/// compile as printed, because none has a hidden line.
fn readme(name: &str, source: &str) -> String {
    let page = source.lines().map_while(|line| line.strip_prefix("//!"));
    let (mut text, mut in_code) = (String::new(), false);
    for line in page.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        if let Some(attributes) = line.strip_prefix("```") {
            in_code = !in_code;
            text += match (in_code, attributes) {
                (true, "") => "```rust\n",
                (true, "no_run") => "```rust,no_run\n",
                (false, "") => "```\n",
                _ => panic!("{name}: ```{attributes}"),
            };
        } else if in_code {
            assert!(line != "#" && !line.starts_with("# "), "{name}: {line}");
            text += &format!("{line}\n");
        } else {
            text += &format!("{}\n", without_links(line));
        }
    }
    format!(
        "# {name}\n\n{text}\nPart of [Vesta]({}), where the guides are. Apache-2.0.\n",
        env!("CARGO_PKG_REPOSITORY")
    )
}

/// A line with links to items replaced by the items' names; links to pages stay.
fn without_links(line: &str) -> String {
    let Some((before, rest)) = line.split_once('[') else {
        return line.to_owned();
    };
    let Some((name, after)) = rest.split_once(']') else {
        return line.to_owned();
    };
    let target = after.strip_prefix('(').and_then(|it| it.split_once(')'));
    let (link, after) = match target {
        Some((page, after)) if page.contains("://") => (format!("[{name}]({page})"), after),
        Some((_, after)) => (name.to_owned(), after.strip_prefix(')').unwrap_or(after)), // of `serve()`
        None => (name.to_owned(), after),
    };
    format!("{before}{link}{}", without_links(after))
}

#[test]
fn the_readme_of_each_crate_is_its_first_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut compared = 0;
    for entry in fs::read_dir(&root).expect("the repository") {
        let folder = entry.expect("an entry").path();
        if !folder.join("README.md").exists() || !folder.join("Cargo.toml").exists() {
            continue;
        }
        let sources = ["src/lib.rs", "src/main.rs"].map(|source| folder.join(source));
        let source = sources.iter().find(|source| source.exists());
        let source = fs::read_to_string(source.expect("a root module")).expect("a source");
        let name = folder.file_name().expect("a name").to_string_lossy();
        compare_at(&format!("{name}/README.md"), &readme(&name, &source));
        compared += 1;
    }
    assert!(compared >= 11, "{compared}");
}

#[test]
fn short_help_has_a_line_for_each_flag_and_long_help_has_examples() {
    for apis in [&[Api::Grpc][..], &[Api::Rest], &Api::ALL] {
        let mut command = command("vesta", apis).term_width(100);
        let short = command.render_help().to_string();
        let flags = settings().get_arguments().count() + 5; // config, print-config, output, help, version
        let is_described = |line: &&str| {
            let parts = line.split("  ").filter(|part| !part.is_empty()).count();
            line.trim_start().starts_with('-') && parts == 2
        };
        let described = short.lines().filter(is_described);
        assert_eq!(described.count(), flags, "{short}");
        assert!(short.lines().count() < flags + 44, "{short}");
        assert!(!short.contains("Examples:"), "{short}");
        let long = command.render_long_help().to_string();
        for arg in settings().get_arguments() {
            let env = arg
                .get_env()
                .and_then(|env| env.to_str())
                .expect("a variable");
            assert!(long.contains(&format!("[env: {env}]")), "{env} in {long}");
            if let Some(default) = default(arg) {
                assert!(
                    long.contains(&format!("[default: {default}]")),
                    "{default} in {long}"
                );
            }
        }
        for part in ["Examples:", "  vesta --config", "Exit codes:"] {
            assert!(long.contains(part), "{part} in {long}");
        }
    }
}

/// The numbers that follow each occurrence of this word.
fn numbers_after(word: &str, text: &str) -> BTreeSet<u32> {
    let number = |rest: &str| {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse().expect("a number")
    };
    text.split(word).skip(1).map(number).collect()
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::read_to_string(path.join(name)).expect("a page")
}

/// The row of a table that begins with this cell.
fn row<'a>(page: &'a str, first: &str) -> &'a str {
    let start = format!("| {first} |");
    let row = page.lines().find(|line| line.starts_with(&start));
    row.unwrap_or_else(|| panic!("no row of {first}"))
}

#[test]
fn the_page_about_stores_has_the_durations_of_the_code() {
    let page = page("operate/stores.md");
    let (_, page) = page.split_once("## Durations").expect("the section");
    let seconds = |duration: Duration| format!("{} s", duration.as_secs_f64());
    for (first, timing) in [
        ("state file (fixed ID)", Timing::FILE),
        ("SQLite pool", Timing::ONE_HOST),
        (
            "MySQL, PostgreSQL, ZooKeeper, etcd, pool server",
            Timing::NETWORK,
        ),
        ("Redis", Timing::IN_MEMORY),
    ] {
        let row = row(page, first);
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2], seconds(timing.window), "{row}");
        assert_eq!(cells[3], seconds(timing.renew_every), "{row}");
        assert_eq!(cells[5], seconds(timing.request_timeout), "{row}");
        if timing != Timing::FILE {
            let grace = format!("bound + {} min, ", timing.takeover_grace.as_secs() / 60);
            let watching = format!("{} of watching", seconds(timing.renew_every * 3 / 2));
            assert!(cells[4].contains(&grace), "{row}");
            assert!(cells[4].contains(&watching), "{row}");
        }
    }
    let reserved = row(page, "a fixed ID in any of these");
    assert!(
        reserved.contains(&seconds(Timing::ONE_HOST.window)),
        "{reserved}"
    );
}

#[test]
fn the_page_about_stores_has_urls_of_every_store() {
    let page = page("operate/stores.md");
    let schemes = [
        "sqlite",
        "mysql",
        "postgres",
        "zookeeper",
        "etcd",
        "vesta",
        "redis",
    ];
    let urls = schemes.map(|scheme| {
        let start = format!("`{scheme}:");
        let (_, url) = page.split_once(&start).expect(scheme);
        format!("{scheme}:{}", url.split('`').next().expect("its end"))
    });
    for url in urls {
        let read: Result<StoreUrl, _> = url.parse();
        assert!(read.is_ok(), "{url}");
    }
}

#[test]
fn the_table_of_limits_has_the_defaults() {
    let page = page("use/api.md");
    let (_, page) = page.split_once("## Limits").expect("the section");
    let (page, _) = page.split_once("\n## ").expect("its end");
    let settings = settings();
    let mut checked = 0;
    for arg in settings.get_arguments() {
        let name = arg.get_id().as_str();
        let row = page
            .lines()
            .find(|row| row.ends_with(&format!("| `{name}` |")));
        let Some(row) = row else { continue };
        let words: Vec<_> = row.split([' ', ';', ',']).collect();
        let default = default(arg).and_then(|text| text.parse::<u64>().ok());
        let Some(number) = default else { continue };
        let unit = if name.ends_with("_ms") { 1_000 } else { 1 };
        let shown = (number / unit).to_string();
        let found =
            [shown, (number / unit / 60).to_string()].map(|it| words.contains(&it.as_str()));
        let grouped = row.replace(',', "").contains(&number.to_string());
        assert!(found.contains(&true) || grouped, "{name} = {number}: {row}");
        checked += 1;
    }
    assert!(checked >= 6, "{checked}");
}

#[test]
fn each_rule_of_safety_is_cited_in_the_code_that_keeps_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let safety = fs::read_to_string(root.join("docs/inside/safety.md")).expect("a document");
    let (_, rules) = safety.split_once("**Twelve rules.**").expect("the rules");
    let (rules, _) = rules
        .split_once("**What then always holds.**")
        .expect("their end");
    let number = |line: &str| line.split_once(". ")?.0.parse().ok();
    let rules: BTreeSet<u32> = rules.lines().filter_map(number).collect();
    assert_eq!(rules, (1..=12).collect());

    let (mut folders, mut cited) = (vec![root.join("vesta-service/src")], BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(path).expect("a source");
                cited.extend(numbers_after("SAFETY.md, rule ", &text));
            }
        }
    }
    assert_eq!(cited, rules);
}
