//! One column of a CSV file: detected or chosen, and reported.

use std::io::{BufRead, Read};

use csv::{Reader, ReaderBuilder, StringRecord};
use vesta_explain::{Written, read as read_id};

/// The column that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its number, starting at 1.
    pub(crate) number: usize,
    /// Its name, if the file has a header line.
    pub(crate) name: Option<String>,
}

/// Delimiters; the most frequent one in the first line separates the columns.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Reads the column of this name or number, or the only one, or the one called `id`. Calls `each` with
/// each cell; with `None` if the line is too short.
pub(crate) fn read(
    mut input: impl BufRead,
    wanted: Option<&str>,
    mut each: impl FnMut(Option<&str>),
) -> Result<Found, String> {
    let mut first = Vec::new();
    input
        .read_until(b'\n', &mut first)
        .map_err(|error| error.to_string())?;
    let line = first
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(&first)
        .to_vec();
    let count = |delimiter: &u8| line.iter().filter(|byte| *byte == delimiter).count();
    let delimiter = DELIMITERS
        .into_iter()
        .rev()
        .max_by_key(count)
        .unwrap_or(b',');
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .from_reader(line.chain(input));
    let mut record = StringRecord::new();
    if !next(&mut reader, &mut record)? {
        return Err("it is empty".to_owned());
    }
    let found = column(&record, wanted)?;
    let mut is_row = found.name.is_none();
    loop {
        if is_row {
            each(record.get(found.number - 1));
        }
        is_row = true;
        if !next(&mut reader, &mut record)? {
            return Ok(found);
        }
    }
}

fn next<R: Read>(reader: &mut Reader<R>, record: &mut StringRecord) -> Result<bool, String> {
    reader
        .read_record(record)
        .map_err(|error| error.to_string())
}

/// Finds the column by the first line, which is a header unless its cell is an ID.
fn column(first: &StringRecord, wanted: Option<&str>) -> Result<Found, String> {
    let names: Vec<_> = first.iter().collect();
    let by_name = |name: &str| names.iter().position(|it| it.eq_ignore_ascii_case(name));
    let index = match wanted {
        Some(wanted) => match (by_name(wanted), wanted.parse::<usize>()) {
            (Some(index), _) => index,
            (None, Ok(number)) if (1..=names.len()).contains(&number) => number - 1,
            (None, Ok(number)) => {
                return Err(format!("it has {} columns, but no {number}", names.len()));
            }
            (None, Err(_)) => {
                return Err(format!(
                    "the first line has no column `{wanted}`: {}",
                    names.join(", ")
                ));
            }
        },
        None if names.len() == 1 => 0,
        None => by_name("id").ok_or_else(|| {
            format!(
                "it has several columns ({}); choose one with --column (name or number)",
                names.join(", ")
            )
        })?,
    };
    let name = Some(names[index])
        .filter(|name| !is_id(name))
        .map(str::to_owned);
    Ok(Found {
        number: index + 1,
        name,
    })
}

/// True if the first cell of a column is an ID. A name such as `id_2` is none, nor is a word.
fn is_id(cell: &str) -> bool {
    let is_word = !cell.contains(|c: char| c.is_numeric());
    !is_word
        && match read_id(cell) {
            Ok(Written::Ids(ids)) => {
                let is_labelled = cell.starts_with(|c: char| c.is_alphabetic());
                ids[0].around.is_empty() || !is_labelled || ids[0].id >= 1 << 32
            }
            other => other.is_ok(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str, wanted: Option<&str>) -> Result<(Vec<String>, Found), String> {
        let mut cells = Vec::new();
        let found = read(text.as_bytes(), wanted, |cell| {
            cells.push(cell.unwrap_or("-").to_owned())
        });
        found.map(|found| (cells, found))
    }

    #[test]
    fn a_column_is_found_by_name_by_number_or_alone() {
        let id = |number| Found {
            number,
            name: Some("id".to_owned()),
        };
        for (text, wanted, expected) in [
            ("user_id,id\n1,7\n1,8\n", Some("id"), id(2)),
            ("user_id,id\r\n1,7\r\n1,8\r\n", None, id(2)),
            ("\u{feff}id;name\n7;\"a;b\"\n8;\"c\n\"\n", None, id(1)),
            ("name\tid\n\"a, b\"\t7\nc\t\"8\"\n", Some("2"), id(2)),
            ("id\n7\n8", None, id(1)),
            (
                "\u{feff}7\n8\n",
                None,
                Found {
                    number: 1,
                    name: None,
                },
            ),
            (
                "x,7\ny,8\n",
                Some("2"),
                Found {
                    number: 2,
                    name: None,
                },
            ),
        ] {
            let (cells, found) = cells(text, wanted).expect(text);
            assert_eq!(
                (cells, found),
                (vec!["7".to_owned(), "8".to_owned()], expected),
                "{text:?}"
            );
        }
        assert_eq!(
            cells("a,id\n1\n", Some("id")).expect("a short line").0,
            ["-"]
        );
    }

    #[test]
    fn a_missing_or_ambiguous_column_is_refused() {
        for (text, wanted, why) in [
            ("a,b\n1,2\n", None, "several columns (a, b)"),
            ("1,2\n", None, "several columns (1, 2)"),
            ("a,b\n1,2\n", Some("id"), "no column `id`: a, b"),
            ("a,b\n1,2\n", Some("3"), "2 columns, but no 3"),
            ("a,b\n1,2\n", Some("0"), "2 columns, but no 0"),
            ("", None, "it is empty"),
        ] {
            let said = cells(text, wanted).expect_err(text);
            assert!(said.contains(why), "{text:?}: {said}");
        }
    }
}
