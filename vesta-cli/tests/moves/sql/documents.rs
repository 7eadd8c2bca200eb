//! The SQL statements of the documents.

use std::fs;
use std::path::Path;

/// Every statement, with the name of its document.
pub(crate) fn all_statements() -> Vec<(String, String)> {
    let of = |(name, text): (String, String)| {
        statements(&text)
            .into_iter()
            .map(move |sql| (name.clone(), sql))
    };
    documents().into_iter().flat_map(of).collect()
}

/// The documents, with their names.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["", "docs/use", "docs/operate", "docs/move", "docs/inside"];
    let of = |folder: &str| fs::read_dir(root.join(folder)).expect("a folder");
    let files = folders.into_iter().flat_map(of);
    let files = files.map(|file| file.expect("a file").path());
    let documents = files.filter(|file| file.extension().is_some_and(|it| it == "md"));
    let read = |file: std::path::PathBuf| {
        let text = fs::read_to_string(&file).expect("text");
        (
            file.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            text,
        )
    };
    documents.map(read).collect()
}

/// The SQL in a document: SQL blocks, and statements in code spans and other blocks.
fn statements(document: &str) -> Vec<String> {
    const VERBS: [&str; 8] = [
        "SELECT ",
        "INSERT ",
        "UPDATE ",
        "DELETE FROM ",
        "ALTER ",
        "CREATE ",
        "DROP ",
        "GRANT ",
    ];
    let (mut all, mut block, mut in_block) = (Vec::new(), None::<String>, false);
    for line in document.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_block = !in_block;
            all.extend(block.take());
            block = (in_block && line == "```sql").then(String::new);
        } else if let Some(block) = &mut block {
            // Comments are dropped.
            *block = format!("{block} {}", line.split("--").next().unwrap_or("").trim());
        } else {
            let spans = line
                .split('`')
                .enumerate()
                .filter(|(i, _)| in_block || i % 2 == 1);
            let spans = spans.flat_map(|(_, span)| {
                let start = VERBS.iter().filter_map(|verb| span.find(verb)).min()?;
                let quote = span[..start]
                    .chars()
                    .next_back()
                    .filter(|c| "'\"".contains(*c));
                Some(span[start..].split(quote.unwrap_or('`')).next()?.to_owned())
            });
            all.extend(spans);
        }
    }
    let plain = |sql: String| {
        sql.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .trim_end_matches(';')
            .to_owned()
    };
    all.into_iter().map(plain).collect()
}

#[test]
fn statements_are_found_in_blocks_and_in_spans() {
    let document = "```sql\nSELECT 1 -- one\n  FROM a;\n```\n`x` and `SELECT b` or SELECT c\n\
                    ```text\n$ mysql -e 'UPDATE d SET e = 1'\nquery(\"SELECT g\").bind(1)\n```\n  ```sql\n  DROP f;\n  ```\n";
    let expected = [
        "SELECT 1 FROM a",
        "SELECT b",
        "UPDATE d SET e = 1",
        "SELECT g",
        "DROP f",
    ];
    assert_eq!(statements(document), expected);
}
