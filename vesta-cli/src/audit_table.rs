//! `audit table`: finds faults in the IDs of a table.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::time::Duration;

use vesta_boot::Error;
use vesta_explain::{Around, Tally, Written, read_as};
use vesta_intf::{IdFormat, UnixMillis};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_store::{Column, read_column};

use crate::cli::TableArgs;
use crate::csv_column;
use crate::output::{grouped, say};
use crate::values::now;

/// IDs sorted in memory: 32 MB.
const AT_ONCE: usize = 1 << 22;
/// Number of files for larger sets: a prime, since the last bits of IDs are often the same.
const PARTS: usize = 127;
/// Maximum examples of each finding.
const EXAMPLES: usize = 10;
/// Tolerated lead of a clock over this one, in milliseconds.
const AHEAD: u64 = 60_000;

/// One kind of finding: its count and examples.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub(crate) count: u64,
    pub(crate) examples: Vec<String>,
}

impl Finding {
    pub(crate) fn add(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }
}

/// The IDs of one machine so far.
#[derive(Debug)]
pub(crate) struct Line {
    /// The latest time so far.
    pub(crate) latest: u64,
    /// Set while its IDs have earlier times than that.
    pub(crate) is_back: bool,
}

/// Numbers too small to be IDs, from before the table used IDs.
#[derive(Debug)]
pub(crate) struct Small {
    pub(crate) count: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// An ID whose time is this soon after the epoch counts as a small number, in milliseconds: no layout was
/// in use before it was designed.
const FIRST: u64 = 3_600_000;

/// An audit in progress.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    pub(crate) rows: u64,
    pub(crate) span: Option<(u64, u64)>,
    pub(crate) lines: BTreeMap<u64, Line>,
    pub(crate) unreadable: Finding,
    pub(crate) small: Option<Small>,
    pub(crate) future: Finding,
    pub(crate) back: Finding,
    pub(crate) unplanned: BTreeMap<u64, (u64, u64)>,
    /// Rows whose notation lost digits.
    pub(crate) lost: Finding,
    /// Rows by the writing around their IDs.
    pub(crate) forms: BTreeMap<&'static str, (u64, &'static Around)>,
    pub(crate) tally: Tally,
    sorter: Sorter,
}

impl Audit {
    fn take(&mut self, text: Option<&str>, args: &TableArgs, now: UnixMillis) -> io::Result<()> {
        self.rows += 1;
        let raw = match text {
            Some(text) => self.read(text, args),
            None => Row::Unreadable,
        };
        let fields = match raw {
            Row::Lost => return Ok(()),
            Row::Unreadable => None,
            Row::Id(raw) => {
                let layout = args.layout.layout.explaining(raw);
                let id = layout.unpack(raw).ok();
                id.and_then(|id| Some((raw, id.machine, layout.moment_of(id.time).ok()?)))
            }
        };
        let Some((raw, machine, made)) = fields else {
            let rows = self.rows;
            self.unreadable
                .add(|| format!("row {rows}: {}", text.unwrap_or("null")));
            return Ok(());
        };
        self.tally.add(raw, &args.layout.layout.explaining(raw));
        if made.0 < args.layout.layout.spec().epoch.0 + FIRST {
            let small = self.small.get_or_insert(Small {
                count: 0,
                low: raw,
                high: raw,
            });
            small.count += 1;
            (small.low, small.high) = (small.low.min(raw), small.high.max(raw));
            return self.sorter.push(raw);
        }
        if made.0 > now.0 + AHEAD {
            self.future.add(|| format!("{raw} ({made})"));
        } else {
            let (first, last) = self.span.unwrap_or((made.0, made.0));
            self.span = Some((first.min(made.0), last.max(made.0)));
        }
        if args
            .machines
            .as_ref()
            .is_some_and(|planned| !planned.contains(&machine))
        {
            self.unplanned.entry(machine).or_insert((raw, 0)).1 += 1;
        }
        let line = self.lines.entry(machine).or_insert(Line {
            latest: made.0,
            is_back: false,
        });
        // Rows of several threads overtake each other.
        let lag = Duration::from_millis(line.latest.saturating_sub(made.0));
        if lag > args.tolerance && !line.is_back {
            let latest = UnixMillis(line.latest);
            self.back
                .add(|| format!("machine {machine} from {latest} to {made} at {raw}"));
        }
        line.is_back = lag > args.tolerance;
        line.latest = line.latest.max(made.0);
        self.sorter.push(raw)
    }
}

/// A row as it is written.
enum Row {
    Id(u64),
    /// Digits are lost.
    Lost,
    Unreadable,
}

impl Audit {
    /// Reads a row, and counts its form.
    fn read(&mut self, text: &str, args: &TableArgs) -> Row {
        let is_decimal = args.format.is_none_or(|format| format == IdFormat::Decimal);
        let id = match (text.parse(), args.format) {
            (Ok(raw), _) if is_decimal => Ok(raw), // nearly always
            (_, Some(format)) => read_as(text, format),
            (_, None) => match vesta_explain::read(text) {
                Ok(Written::Lost { by, from, until }) => {
                    let row = self.rows;
                    self.lost
                        .add(|| format!("row {row}: {text} ({from} to {until})"));
                    self.forms.entry(by.name).or_insert((0, by)).0 += 1;
                    return Row::Lost;
                }
                written => written.and_then(|it| it.one("--format")).map(|it| {
                    for by in it.around {
                        self.forms.entry(by.name).or_insert((0, by)).0 += 1;
                    }
                    it.id
                }),
            },
        };
        id.map_or(Row::Unreadable, Row::Id)
    }
}

/// Finds IDs that occur more than once, in little memory. Once memory is full, each ID goes
/// into one of several files, where equal ones meet. For a thousand million IDs, one file is 63 MB.
#[derive(Debug, Default)]
struct Sorter {
    ids: Vec<u64>,
    parts: Vec<BufWriter<File>>,
}

impl Sorter {
    fn push(&mut self, id: u64) -> io::Result<()> {
        self.ids.push(id);
        if self.ids.len() < AT_ONCE {
            Ok(())
        } else {
            self.spill()
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        while self.parts.len() < PARTS {
            self.parts.push(BufWriter::new(tempfile::tempfile()?));
        }
        for id in self.ids.drain(..) {
            self.parts[id as usize % PARTS].write_all(&id.to_le_bytes())?;
        }
        Ok(())
    }

    /// The IDs that occur more than once; the examples are the smallest.
    fn repeated(mut self) -> io::Result<Finding> {
        let (mut count, mut smallest) = (0, BTreeMap::new());
        let mut look = |mut ids: Vec<u64>| {
            ids.sort_unstable();
            for same in ids.chunk_by(u64::eq).filter(|same| same.len() > 1) {
                count += 1;
                smallest.insert(same[0], same.len());
                if smallest.len() > EXAMPLES {
                    smallest.pop_last();
                }
            }
        };
        if self.parts.is_empty() {
            look(self.ids);
        } else {
            self.spill()?;
            for part in self.parts {
                let mut file = part.into_inner()?;
                let mut bytes = Vec::new();
                file.rewind()?;
                file.read_to_end(&mut bytes)?;
                look(
                    bytes
                        .as_chunks()
                        .0
                        .iter()
                        .copied()
                        .map(u64::from_le_bytes)
                        .collect(),
                );
            }
        }
        let examples = smallest
            .iter()
            .map(|(id, count)| format!("{id} ({count} times)"));
        Ok(Finding {
            count,
            examples: examples.collect(),
        })
    }
}

/// Audits a column: the audit, its repeated IDs, and the location of the column.
pub(crate) fn audited(args: &TableArgs) -> Result<(Audit, Finding, String), Error> {
    let (mut audit, now, clock) = (Audit::default(), now(), SystemClock::new());
    let (began, mut next) = (clock.monotonic(), Duration::from_secs(2));
    let no_room =
        |error: io::Error| Error::software("cannot sort the IDs in the temporary folder", error);
    let mut kept = Ok(());
    let mut each = |text: Option<&str>| {
        if kept.is_err() {
            return;
        }
        kept = audit.take(text, args, now);
        // Reports progress once the audit takes longer than two seconds.
        if audit.rows.is_multiple_of(10_000) && clock.monotonic() - began >= next {
            say(&format!(
                "{} rows after {} s",
                grouped(audit.rows),
                next.as_secs()
            ));
            next += Duration::from_secs(2);
        }
    };
    let looked_at = read_ids(args, &mut each)?;
    kept.map_err(no_room)?;
    let repeated = std::mem::take(&mut audit.sorter)
        .repeated()
        .map_err(no_room)?;
    if audit.rows == 0 {
        return Error::refuse(format!("{looked_at} has no rows: nothing was audited"));
    }
    Ok((audit, repeated, looked_at))
}

/// Reads the IDs of a database or a CSV file, and returns their location.
fn read_ids(
    args: &TableArgs,
    each: &mut (dyn FnMut(Option<&str>) + Send),
) -> Result<String, Error> {
    let column = args.column.as_deref();
    let (file, url) = match (&args.file, &args.from) {
        (Some(file), _) => (file.as_str(), None),
        (None, Some(from)) if from == "-" => ("-", None),
        (None, Some(url)) => ("", Some(url)),
        (None, None) => {
            return Error::refuse("name a CSV file, - for standard input, or --from URL");
        }
    };
    let Some(url) = url else {
        if args.table.is_some() || args.order.is_some() {
            return Error::refuse(
                "--table and --order-by are for databases; leave them out for CSV",
            );
        }
        let source = if file == "-" { "standard input" } else { file };
        let failed = |error: &dyn Display| Error::setting(format!("CSV of {source}: {error}"));
        let input: Box<dyn BufRead> = match file {
            "-" => Box::new(io::stdin().lock()),
            path => Box::new(BufReader::new(
                File::open(path).map_err(|error| failed(&error))?,
            )),
        };
        let found = csv_column::read(input, column, each).map_err(|error| failed(&error))?;
        let name = found
            .name
            .map_or("no header line".to_owned(), |name| format!("`{name}`"));
        return Ok(format!("column {} of {source} ({name})", found.number));
    };
    let (Some(table), Some(column)) = (&args.table, column) else {
        return Error::refuse("a database needs --table and --column");
    };
    let order = args.order.clone().unwrap_or_else(|| column.to_owned());
    let column = Column {
        table: table.clone(),
        column: column.to_owned(),
        order,
    };
    let read = url.parse().and_then(|url| read_column(&url, &column, each));
    read.map_err(Error::setting)?;
    Ok(format!("column `{}` of {table}", column.column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_ids_are_found_within_and_between_runs() {
        let mut sorter = Sorter::default();
        for id in [5, 3, 5, 9, 3, 3, 1] {
            sorter.push(id).expect("memory");
        }
        // As if memory were full.
        sorter.spill().expect("room");
        for id in [2, 5, 9, 9, 10] {
            sorter.push(id).expect("memory");
        }
        let found = sorter.repeated().expect("readable");
        assert_eq!(found.count, 3);
        assert_eq!(
            found.examples,
            ["3 (3 times)", "5 (3 times)", "9 (3 times)"]
        );
    }

    #[test]
    fn the_smallest_examples_are_shown_in_order() {
        let mut sorter = Sorter::default();
        for id in (0..1000).rev().flat_map(|id| [id, id]) {
            sorter.push(id).expect("memory");
        }
        sorter.spill().expect("room");
        let found = sorter.repeated().expect("readable");
        assert_eq!((found.count, found.examples.len()), (1000, EXAMPLES));
        assert!(found.examples[0].starts_with("0 ") && found.examples[9].starts_with("9 "));
    }
}
