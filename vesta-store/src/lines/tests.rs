use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;

/// A table in memory, that may be away or forget.
#[derive(Debug, Clone, Default)]
struct Table(Arc<Mutex<Content>>);

#[derive(Debug, Clone, Default)]
struct Content {
    name: &'static str,
    away: bool,
    rows: Vec<SegmentTag>,
    tokens: Vec<(String, String)>,
}

impl Table {
    fn of(name: &'static str, max_id: i64, stride: Stride) -> Self {
        let rows = vec![SegmentTag { stride, ..SegmentTag::new("orders", max_id, 10) }];
        Self(Arc::new(Mutex::new(Content { name, rows, ..Content::default() })))
    }

    fn change(&self, change: impl FnOnce(&mut Content)) {
        change(&mut self.0.lock().expect("no panic"));
    }

    fn ask<T>(&self, ask: impl FnOnce(&mut Content) -> T) -> Result<T, StoreError> {
        let mut content = self.0.lock().expect("no panic");
        if content.away {
            return Err(StoreError::unavailable("away", std::io::Error::other("it is")));
        }
        Ok(ask(&mut content))
    }
}

impl SegmentStore for Table {
    fn describe(&self) -> String {
        self.0.lock().expect("no panic").name.into()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        self.ask(|content| content.rows.clone())
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        self.take(key, step, Stride::ONE)
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        self.ask(|content| {
            let end = i64::try_from(numbers.end).expect("small");
            let row = content.rows.iter_mut().find(|row| row.key == key && row.max_id == end);
            row.map(|row| row.max_id = i64::try_from(numbers.start).expect("small")).is_some()
        })
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        self.ask(|content| (content.name == "doubtful").then(|| "replicas".into()))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.add(tag, Stride::ONE)
    }
}

impl Line for Table {
    fn take(&self, key: &str, step: u64, stride: Stride) -> Result<NextRange, StoreError> {
        self.ask(|content| {
            let row = content.rows.iter_mut().find(|row| row.key == key && row.stride == stride);
            let Some(row) = row else { return NextRange::NoTag };
            let start = row.max_id.unsigned_abs();
            match row.max_id.checked_add_unsigned(step) {
                Some(end) => row.max_id = end,
                None => return NextRange::UsedUp,
            }
            NextRange::Strided(start..start + step, stride)
        })
    }

    fn add(&self, tag: &NewSegmentTag, stride: Stride) -> Result<bool, StoreError> {
        self.ask(|content| {
            let new = content.rows.iter().all(|row| row.key != tag.key);
            if new {
                content.rows.push(SegmentTag { stride, ..SegmentTag::clone(tag) });
            }
            new
        })
    }

    fn tokens(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.ask(|content| content.tokens.clone())
    }
}

const fn half(remainder: u64) -> Stride {
    Stride { delta: 2, remainder }
}

fn pair(a: i64, b: i64) -> [Table; 2] {
    [Table::of("a", a, half(0)), Table::of("b", b, half(1))]
}

fn over(tables: &[Table], spread: Spread) -> SegmentLines {
    let lines = tables.iter().map(|table| Box::new(table.clone()) as _);
    SegmentLines::new(lines.collect(), spread)
}

/// The numbers of the next range for somebody who has had those below `above`.
fn numbers(lines: &SegmentLines, above: u64) -> Vec<u64> {
    match lines.next_range_above("orders", 10, above).expect("one answers") {
        NextRange::Numbers(range) => range.collect(),
        NextRange::Strided(range, stride) => {
            range.filter(|it| it % stride.delta == stride.remainder).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_database_is_kept_to_until_it_fails() {
    let tables = pair(1, 1);
    let lines = over(&tables, Spread::Kept);
    assert_eq!(lines.tags().unwrap().len(), 1);
    assert_eq!(numbers(&lines, 0), [2, 4, 6, 8, 10]);
    assert_eq!(numbers(&lines, 11), [12, 14, 16, 18, 20]);
    tables[0].change(|a| a.away = true);
    // b stands at 1: it skips what lies below 21.
    let after = numbers(&lines, 21);
    assert_eq!(after.first(), Some(&21));
    let end = after.last().unwrap() + 1;
    tables[0].change(|a| a.away = false);
    assert!(numbers(&lines, end).iter().all(|it| it % 2 == 1), "b is kept to");
    tables[1].change(|b| b.away = true);
    assert!(numbers(&lines, end + 10).iter().all(|it| it % 2 == 0));
    tables[0].change(|a| a.away = true);
    assert!(lines.next_range("orders", 10).is_err_and(|error| !error.is_permanent()));
}

#[test]
fn whichever_database_answers_no_number_comes_twice_and_each_server_goes_up() {
    for spread in [Spread::Kept, Spread::Random] {
        let tables = [0, 1, 2].map(|it| Table::of("one", 1 + 7 * it, third(it)));
        let servers = [(); 3].map(|()| (over(&tables, spread), 0));
        let mut servers = servers;
        servers.iter().for_each(|(lines, _)| drop(lines.tags().unwrap()));
        let mut seen = BTreeSet::new();
        for round in 0_usize..3000 {
            let (lines, highest) = &mut servers[round % 3];
            tables[round / 7 % 3].change(|table| table.away = round % 5 < 2);
            if tables.iter().all(|table| table.0.lock().expect("no panic").away) {
                continue;
            }
            for number in numbers(lines, *highest) {
                assert!(number >= *highest, "{number} after {highest}");
                assert!(seen.insert(number), "{number} twice");
                *highest = number + 1;
            }
        }
        assert!(seen.len() > 3000, "{}", seen.len());
    }
}

fn third(remainder: i64) -> Stride {
    Stride { delta: 3, remainder: remainder.unsigned_abs() }
}

#[test]
fn any_database_may_be_chosen_by_chance() {
    let lines = over(&pair(1, 1), Spread::Random);
    lines.tags().unwrap();
    let mut above = 0;
    let parities: BTreeSet<_> = (0..100)
        .map(|_| {
            let numbers = numbers(&lines, above);
            above = numbers.last().unwrap() + 1;
            numbers[0] % 2
        })
        .collect();
    assert_eq!(parities, [0, 1].into());
}

#[test]
fn rows_that_could_meet_are_refused_with_both() {
    for (stride, good) in [
        (half(1), true),
        (half(0), false),
        (Stride { delta: 3, remainder: 1 }, false),
        (Stride::ONE, false),
    ] {
        let tables = [Table::of("a", 1, half(0)), Table::of("b", 1, stride)];
        let lines = over(&tables, Spread::Kept);
        let (checked, listed) = (lines.check(), lines.tags());
        assert_eq!((checked.is_ok(), listed.is_ok()), (good, good), "{stride:?}");
        if let Err(error) = checked {
            let said = error.to_string();
            assert!(
                error.is_permanent() && said.contains("tag `orders`: delta 2 and remainder 0 in a")
            );
            let second = format!("delta {} and remainder {} in b", stride.delta, stride.remainder);
            assert!(said.contains(&second), "{said}");
            assert!(lines.next_range("orders", 10).is_err(), "nothing is taken");
        }
    }
    let lines = over(&[Table::of("a", 1, half(1))], Spread::Kept);
    assert!(lines.check().is_ok(), "one database may have every second number");
}

#[test]
fn a_database_that_is_away_at_the_start_is_used_once_it_was_seen() {
    let tables = pair(1, 1);
    tables[0].change(|a| a.away = true);
    let lines = over(&tables, Spread::Kept);
    assert!(lines.check().is_ok());
    assert_eq!(lines.tags().unwrap()[0].stride, half(1));
    assert_eq!(numbers(&lines, 0), [1, 3, 5, 7, 9]);
    tables.iter().for_each(|table| table.change(|it| it.away = !it.away));
    assert!(lines.next_range("orders", 10).is_err(), "its row has not been compared");
    lines.tags().unwrap();
    assert!(numbers(&lines, 11).iter().all(|it| it % 2 == 0));
}

#[test]
fn a_database_that_went_back_is_left_out_and_named() {
    let tables = pair(1, 1);
    let lines = over(&tables, Spread::Kept);
    lines.tags().unwrap();
    assert_eq!(numbers(&lines, 0).len(), 5);
    tables[0].change(|a| a.rows[0].max_id = 1);
    assert_eq!(numbers(&lines, 11)[0], 11, "the other has them");
    tables[1].change(|b| b.rows[0].max_id = 1);
    tables[0].change(|a| a.rows[0].max_id = 1);
    let error = lines.next_range_above("orders", 10, 31).unwrap_err().to_string();
    assert!(error.starts_with("b went back: set max_id of tag `orders` above 21"), "{error}");
    // One alone leaves that to who asks: it knows up to where it had numbers.
    let alone = over(&tables[..1], Spread::Kept);
    alone.tags().unwrap();
    assert!(!alone.has_several_lines());
    assert!(numbers(&alone, 1000).iter().all(|it| *it < 1000));
}

#[test]
fn what_is_given_back_goes_to_the_database_it_came_from() {
    let tables = pair(1, 1);
    let lines = over(&tables, Spread::Kept);
    lines.tags().unwrap();
    assert_eq!(numbers(&lines, 0), [2, 4, 6, 8, 10]);
    tables[0].change(|a| a.away = true);
    assert_eq!(numbers(&lines, 11)[0], 11);
    let max_id = |table: &Table| table.0.lock().expect("no panic").rows[0].max_id;
    let end = max_id(&tables[1]).unsigned_abs();
    assert!(!lines.give_back("orders", 7..end + 1).unwrap(), "nobody had those");
    assert!(lines.give_back("orders", 7..end).unwrap());
    assert_eq!(tables.each_ref().map(max_id), [11, 11], "7 to 10 came from the other");
    assert!(!lines.give_back("nothing", 7..11).unwrap());
}

#[test]
fn a_new_tag_is_shared_among_the_databases() {
    let tables = ["one", "other"]
        .map(|name| Table(Arc::new(Mutex::new(Content { name, ..Content::default() }))));
    let lines = over(&tables, Spread::Kept);
    let tag = NewSegmentTag::new("orders", 10).unwrap();
    assert!(lines.create(&tag).unwrap());
    assert!(!lines.create(&tag).unwrap());
    let strides = tables.each_ref().map(|table| table.tags().unwrap()[0].stride);
    assert_eq!(strides, [half(0), half(1)]);
    tables[1].change(|b| b.rows.clear());
    assert!(lines.create(&tag).unwrap(), "where it is missing");
    tables[1].change(|b| b.rows.clear());
    tables[0].change(|a| a.rows[0].stride = Stride::ONE);
    let error = lines.create(&tag).unwrap_err().to_string();
    let said = "is in one already, with delta 1 and remainder 0; add the rows that are missing";
    assert!(error.contains(said), "{error}");
    assert!(tables[1].tags().unwrap().is_empty(), "nothing was added");
}

#[test]
fn one_that_is_away_counts_as_it_was_seen_last() {
    let tables = pair(1, 1);
    let lines = over(&tables, Spread::Kept);
    lines.tags().unwrap();
    tables[0].change(|a| a.away = true);
    tables[1].change(|b| b.rows[0].stride = half(0));
    let error = lines.tags().unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("delta 2 and remainder 0 in b"));
    assert!(lines.next_range("orders", 10).is_err(), "b has another row than was seen");
}

#[test]
fn answers_that_come_in_another_order_leave_the_highest_end() {
    let tables = pair(1, 1);
    let lines = over(&tables, Spread::Kept);
    lines.tags().unwrap();
    lines.note(0, "orders", &(11..21));
    lines.note(0, "orders", &(1..11));
    assert_eq!(lines.known()["orders"].rows[0].as_ref().expect("seen").last, 11..21);
}

#[test]
fn doubts_and_tokens_name_their_databases() {
    let [a, _] = pair(1, 1);
    let lines = over(&[a.clone(), Table::of("doubtful", 1, half(1))], Spread::Kept);
    assert_eq!(lines.doubt().unwrap().as_deref(), Some("doubtful: replicas"));
    assert_eq!(lines.describe(), "a and doubtful");
    a.change(|a| a.tokens.push(("token".into(), "orders".into())));
    assert_eq!(lines.tokens().unwrap().len(), 1);
    a.change(|a| a.away = true);
    assert!(lines.tokens().unwrap().is_empty() && lines.doubt().is_err());
}
