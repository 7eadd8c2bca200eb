//! `segment …`: the tags in the database of segment mode.

use clap::{Args, Subcommand, ValueEnum, value_parser};
use serde_json::json;
use vesta_numbers::segment::{NewSegmentTag, SegmentStore, SegmentTag};
use vesta_store::StoreUrl;

use super::stored::tags;
use super::{NewSegment, SegmentCreated, StoredSegment, import};
use crate::console::Console;
use crate::error::Error;
use crate::output::{Output, Table};
use crate::report::{counted, exists, failed, other, report, titled, told};
use crate::settings::Config;
use crate::stores::open_segments;

/// Commands for the segment tags in the database of `segment.store`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SegmentCommand {
    /// Show every tag and its next number; changes nothing
    List,
    /// Add a tag, unless it exists
    ///
    /// Running servers see it within a minute. With auto_init, a missing table is created.
    Create(NewSegment),
    /// Continue the segments of another system: one tag of the same name per segment, above its last
    /// number
    ///
    /// Tags that are already as far are left alone, so repeating the import changes nothing. First stop
    /// the other system for these segments.
    Import(Box<SegmentImport>),
}

/// Options of `segment import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SegmentImport {
    /// The legacy system
    pub system: LegacySegments,
    /// URL of its store: redis://:password@host:6379/0, mysql://user:password@host:3306/database or
    /// zookeeper://host:2181
    #[arg(
        long,
        value_name = "URL",
        env = "VESTA_IMPORT_FROM",
        hide_env_values = true
    )]
    pub from: StoreUrl,
    /// Namespace of CosId, `cosid.namespace` of its applications
    #[arg(long, value_name = "NAME")]
    pub cosid_namespace: String,
    /// Minimum numbers per fetch, for each tag
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u64).range(1..=NewSegmentTag::MAX_STEP))]
    pub step: u64,
}

/// Legacy system whose segments can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LegacySegments {
    /// CosId, in Redis, MySQL or ZooKeeper
    #[value(name = "cosid")]
    CosId,
}

pub(crate) fn run(
    config: &Config,
    command: &SegmentCommand,
    output: Output,
) -> Result<String, Error> {
    match command {
        SegmentCommand::List => list(&*open_segments(config, false)?, output),
        SegmentCommand::Create(new) => {
            let tag = new.checked().map_err(Error::setting)?;
            let store = open_segments(config, config.store.auto_init)?;
            let (created, said) = create(&*store, &tag)?;
            let answer = SegmentCreated::new(new.clone(), created);
            Ok(told(output, said, &answer))
        }
        SegmentCommand::Import(asked) => {
            let tags = import::tags(asked)?;
            let mut console = Console::terminal(true, output);
            import::run(
                &*open_segments(config, config.store.auto_init)?,
                &tags,
                &mut console.say,
            )
            .map(|said| report(output, said))
        }
    }
}

/// Creates the table of tags, if missing.
pub(crate) fn init(config: &Config) -> Result<String, Error> {
    let store = open_segments(config, true)?;
    let tags = tags(&*store)?;
    Ok(format!(
        "the segment tags exist in {}: {}\n",
        store.describe(),
        counted(tags.len(), "tag")
    ))
}

/// True if the tag is new, and what to say about it.
fn create(store: &dyn SegmentStore, tag: &NewSegmentTag) -> Result<(bool, String), Error> {
    let (store_name, key) = (store.describe(), &tag.key);
    let created = vesta_numbers::segment::create(store, tag);
    let created = created.map_err(|error| failed(&store_name, &error))?;
    if !created.is_new(key).map_err(other)? {
        return Ok((false, exists(key, &store_name)));
    }
    let (first, step) = (tag.max_id, tag.step);
    let until = tag
        .last
        .map_or("on".to_owned(), |last| format!("to {last}"));
    let said = format!(
        "created tag {key} in {store_name}: numbers from {first} {until}, {step} at a time\n"
    );
    Ok((true, said))
}

fn list(store: &dyn SegmentStore, output: Output) -> Result<String, Error> {
    Ok(listed(&store.describe(), &tags(store)?, output))
}

fn listed(store: &str, tags: &[SegmentTag], output: Output) -> String {
    let segments: Vec<_> = tags.iter().map(StoredSegment::from).collect();
    let table = Table::of(&segments);
    let json = json!({ "store": store, "tags": segments });
    output.pick(
        &titled(store, &table, tags.len()),
        &json,
        &table.render(Output::Csv),
    )
}

#[cfg(test)]
mod tests {
    use vesta_numbers::testing::MemorySegmentStore;

    use super::*;
    use vesta_intf::IdError;

    fn new_tag(
        tag: &str,
        step: u64,
        first: u64,
        description: Option<&str>,
    ) -> Result<NewSegmentTag, IdError> {
        let new = NewSegment {
            tag: tag.into(),
            step,
            first,
            last: None,
            description: description.map(str::to_owned),
        };
        new.checked()
    }

    fn created(store: &MemorySegmentStore, key: &str) -> Result<String, String> {
        let tag = new_tag(key, 1000, 7, Some("the orders")).expect("a right tag");
        let created = create(store, &tag).map_err(|error| error.to_string())?;
        Ok(created.1)
    }

    #[test]
    fn a_tag_is_created_once_and_listed() {
        let store = MemorySegmentStore::new();
        let said = created(&store, "orders").expect("created");
        assert_eq!(
            said,
            "created tag orders in memory: numbers from 7 on, 1000 at a time\n"
        );
        let said = created(&store, "orders").expect("it is there");
        assert_eq!(
            said,
            "tag orders exists in memory with this definition; nothing was changed\n"
        );
        let other = new_tag("orders", 1001, 7, None).expect("a right tag");
        let error = create(&store, &other).expect_err("it is another");
        assert_eq!(
            (error.exit_code(), error.to_string()),
            (
                1,
                "tag `orders` already exists, and is another; nothing was changed".to_owned()
            )
        );

        let said = list(&store, Output::Text).expect("a list");
        let expected = "memory: 1 tag\n\n\
            tag     next in store  last  table step  update time               description\n\
            orders              7     -        1000  2023-11-14T22:13:20.000Z  the orders\n";
        assert_eq!(said, expected);
        let said = list(&store, Output::Json).expect("a list");
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["tags"][0]["tag"], "orders");
        assert_eq!(said["tags"][0]["nextInStore"], "7");
        assert_eq!(said["tags"][0]["tableStep"], 1000);
    }

    #[test]
    fn foreign_text_in_the_table_is_escaped_for_the_terminal() {
        let store = MemorySegmentStore::new();
        let tag = |key: &str| SegmentTag {
            description: Some("\u{1b}[2J".into()),
            ..SegmentTag::new(key, -5, 0)
        };
        store.put(tag("a\nb\u{202e}"));
        let said = list(&store, Output::Text).expect("a list");
        let row = said
            .lines()
            .last()
            .map(|row| row.split_whitespace().collect::<Vec<_>>());
        let expected = [r"a\u000ab\u202e", "-5", "-", "0", "-", r"\u001b[2J"];
        assert_eq!(row.as_deref(), Some(&expected[..]), "{said}");
    }

    #[test]
    fn a_row_without_a_usable_number_is_listed_verbatim() {
        let tags = [("a", ["NULL", "10"]), ("b", ["-5", "1.5"])].map(|(key, cells)| {
            let unusable = Some(cells.map(str::to_owned));
            SegmentTag {
                unusable,
                ..SegmentTag::new(key, -1, -1)
            }
        });
        let said = listed("memory", &tags, Output::Text);
        let rows: Vec<_> = said
            .lines()
            .skip(3)
            .map(|row| row.split_whitespace())
            .collect();
        let rows: Vec<_> = rows
            .into_iter()
            .map(|row| row.take(4).collect::<Vec<_>>())
            .collect();
        assert_eq!(rows, [["a", "NULL", "-", "10"], ["b", "-5", "-", "1.5"]]);
        let said = listed("memory", &tags, Output::Json);
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let of = |row: usize| {
            (
                &said["tags"][row]["nextInStore"],
                &said["tags"][row]["tableStep"],
            )
        };
        assert_eq!(of(0), (&json!("NULL"), &json!(10)));
        assert_eq!(of(1), (&json!("-5"), &json!("1.5")));
    }

    #[test]
    fn an_invalid_tag_is_refused() {
        for (key, step, first, expected) in [
            ("", 1, 1, "tag"),
            ("a", 0, 1, "step must be 1 to 2147483647, but is 0"),
            ("a", 1, u64::MAX, "first must be 0 to"),
        ] {
            let said = new_tag(key, step, first, None)
                .expect_err(expected)
                .to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
