//! `store show`: the namespace, and the owner of each machine ID.

use serde::Serialize;
use serde_json::{Value, json};
use vesta_intf::UnixMillis;
use vesta_service::lease::{Doubt, Namespace, Snapshot};

use super::opened::Opened;
use crate::error::Error;
use crate::output::{Cell, Output, Table, facts};
use crate::stores::state::State;
use crate::ticks::millis;

/// The namespace as JSON. A position is text: it may exceed the range of JSON numbers.
pub(super) fn as_json(opened: &Opened) -> Result<Value, Error> {
    let snapshot = opened.snapshot()?;
    let Namespace {
        uuid,
        fingerprint,
        floor,
        window,
        doubt,
        writer,
    } = &snapshot.namespace;
    let doubt = doubt.as_ref().map(|Doubt { since, reach, window, why, .. }| {
        let (since, reach) = (since.to_string(), reach.to_string());
        json!({ "since": since, "reach": reach, "longestWindowMs": millis(*window), "reason": why })
    });
    Ok(json!({
        "store": opened.store().describe(),
        "doubt": doubt,
        "writer": writer,
        "namespace": opened.name(),
        "uuid": format!("{uuid:032x}"),
        "fingerprint": fingerprint,
        "layout": opened.is_of_our_layout().then(|| opened.layout.name()),
        "longestWindowMs": millis(*window),
        "floor": floor.to_string(),
        "floorTime": time(opened, *floor).filter(|_| *floor > 0),
        "records": rows(opened, &snapshot, opened.now()?),
    }))
}

pub(super) fn run(opened: &Opened, output: Output) -> Result<String, Error> {
    if output == Output::Json {
        return Ok(format!("{}\n", as_json(opened)?));
    }
    let snapshot = opened.snapshot()?;
    let rows = rows(opened, &snapshot, opened.now()?);
    let (store, namespace) = (opened.store(), &snapshot.namespace);
    let uuid = format!("{:032x}", namespace.uuid);
    let layout = opened.is_of_our_layout().then(|| opened.layout.name());
    let floor = namespace.floor.to_string();
    let floor_time = time(opened, namespace.floor).filter(|_| namespace.floor > 0);
    let layout = layout.unwrap_or("not the configured one, so that bounds are positions");
    let floor = floor_time.unwrap_or(if namespace.floor > 0 {
        floor
    } else {
        "none".to_owned()
    });
    let forgets = namespace.doubt.as_ref().map(|Doubt { since, why, .. }| {
        format!("it may forget what it acknowledged: {why} (known since {since}; see store trust)")
    });
    let lines = [
        ("store", Some(store.describe())),
        ("durability", forgets),
        ("namespace", Some(opened.name().to_owned())),
        ("uuid", Some(uuid)),
        (
            "layout",
            Some(format!("{} ({layout})", namespace.fingerprint)),
        ),
        ("floor", Some(floor)),
        ("machine IDs", Some(summary(&rows))),
    ];
    let lines: Vec<_> = lines
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?)))
        .collect();
    let mut out = facts(&lines);
    let mut table = Table::new([
        "machine",
        "state",
        "host",
        "pid",
        "claim",
        "bound",
        "last change",
    ]);
    rows.iter().for_each(|row| table.row(row.cells(output)));
    if output == Output::Csv {
        return Ok(table.render(output));
    }
    if !rows.is_empty() {
        out += &format!("\n{}", table.render(output));
    }
    if rows.iter().any(|row| row.state == State::Lost.name()) {
        out += "\nlost: its record was deleted or replaced; `store repair ID` recreates it\n";
    }
    Ok(out)
}

/// Row of a machine ID.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    machine: u64,
    state: &'static str,
    expired_since: Option<String>,
    host: String,
    pid: u32,
    claim: u64,
    bound: String,
    bound_time: Option<String>,
    /// `null` if the record was deleted.
    last_change: Option<String>,
}

/// The moment of a position; `None` in another layout, where the same number is another moment.
fn time(opened: &Opened, position: u64) -> Option<String> {
    opened
        .is_of_our_layout()
        .then(|| opened.layout.moment_at(position).to_string())
}

fn rows(opened: &Opened, snapshot: &Snapshot, now: UnixMillis) -> Vec<Row> {
    // Before the epoch, or in another layout, no machine ID counts as expired.
    let now = opened
        .layout
        .position_at(now)
        .ok()
        .filter(|_| opened.is_of_our_layout());
    let row = |(machine, state): (u64, State)| {
        let found = snapshot.records.get(&machine);
        let record = found.cloned().unwrap_or_default();
        let last_change = found.map(|record| record.info_time.to_string());
        Row {
            machine,
            state: state.name(),
            expired_since: last_change.clone().filter(|_| state == State::Expired),
            host: record.host,
            pid: record.pid,
            claim: record.epoch,
            bound: record.bound.to_string(),
            bound_time: found.and_then(|record| time(opened, record.bound)),
            last_change,
        }
    };
    State::all(snapshot, now.unwrap_or(0))
        .into_iter()
        .map(row)
        .collect()
}

/// `1 held, 2 released`.
fn summary(rows: &[Row]) -> String {
    let count = |state: &str| rows.iter().filter(|row| row.state == state).count();
    let parts = State::NAMES.map(|state| (count(state), state));
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    if parts.is_empty() {
        "none was ever claimed".to_owned()
    } else {
        parts.join(", ")
    }
}

impl Row {
    fn cells(&self, output: Output) -> [Cell; 7] {
        let (machine, state) = (self.machine.into(), self.state.into());
        let Some(last_change) = &self.last_change else {
            use Cell::Missing;
            return [machine, state, Missing, Missing, Missing, Missing, Missing];
        };
        // With a space, at which a narrow table may fold it.
        let time = |time: &str| match output {
            Output::Text => time.replace('T', " "),
            _ => time.to_owned(),
        };
        let bound = self.bound_time.as_ref().unwrap_or(&self.bound);
        let (host, pid) = ((&*self.host).into(), u64::from(self.pid).into());
        [
            machine,
            state,
            host,
            pid,
            self.claim.into(),
            time(bound).into(),
            time(last_change).into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use vesta_intf::IdMeta;
    use vesta_service::lease::Record;

    use super::super::testing::{NOW, World, at, held};
    use super::*;

    fn world() -> World {
        let world = World::new();
        world.put(
            12,
            &Record {
                owner: Record::FOREIGN,
                pid: 0,
                ..held(at(10))
            },
        );
        world.put(3, &held(at(5)));
        world.put(
            7,
            &Record {
                host: "db\u{1b}[2J-2".into(),
                ..held(at(-100))
            },
        );
        world.put(
            4,
            &Record {
                owner: 0,
                released: true,
                ..held(at(-7))
            },
        );
        world
    }

    #[test]
    fn text_output_is_a_table() {
        let opened = world().opened();
        let uuid = format!("{:032x}", opened.namespace.uuid);
        let expected = format!(
            "\
store       memory
namespace   default
uuid        {uuid}
layout      1/1/2/30/20/10 tsm 1000ms @1420041600000 (max-peak)
floor       none
machine IDs 1 held, 1 expired, 1 released, 1 foreign

machine  state                                  host        pid  claim  bound                     last change
      3  held                                   web-1      4711      3  2026-01-01 00:00:05.000Z  2025-12-31 23:59:54.000Z
      4  released                               web-1      4711      3  2025-12-31 23:59:53.000Z  2025-12-31 23:59:54.000Z
      7  expired  db\\u001b[2J-2   4711      3  2025-12-31 23:58:20.000Z  2025-12-31 23:59:54.000Z
     12  foreign                                web-1         0      3  2026-01-01 00:00:10.000Z  2025-12-31 23:59:54.000Z
"
        );
        let shown = run(&opened, Output::Text).expect("memory");
        // Columns are as wide as their contents.
        let squeeze = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let sorted = |mut words: Vec<String>| {
            words.sort();
            words
        };
        assert_eq!(
            sorted(squeeze(&shown)),
            sorted(squeeze(&expected)),
            "{shown}"
        );
        assert!(
            shown.lines().skip(7).all(|line| line.chars().count() <= 80),
            "{shown}"
        );
    }

    #[test]
    fn json_has_large_numbers_as_text() {
        let world = world();
        world.leases().raise_floor(at(60)).expect("memory");
        let opened = world.opened();
        let shown: Value =
            serde_json::from_str(&run(&opened, Output::Json).expect("memory")).expect("JSON");
        assert_eq!(shown["store"], "memory");
        assert_eq!(shown["floor"], at(60).to_string());
        assert_eq!(shown["floorTime"], UnixMillis(NOW.0 + 60_000).to_string());
        let expected = json!({
            "machine": 7, "state": "expired", "expiredSince": "2025-12-31T23:59:54.000Z",
            "host": "db\u{1b}[2J-2", "pid": 4711, "claim": 3,
            "bound": at(-100).to_string(), "boundTime": "2025-12-31T23:58:20.000Z",
            "lastChange": "2025-12-31T23:59:54.000Z",
        });
        assert_eq!(shown["records"][2], expected);
        assert_eq!(shown["records"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn a_machine_id_whose_record_was_deleted_or_replaced_is_lost() {
        let world = world();
        world.delete(7);
        world.delete(12);
        let other = world.own(Record {
            birth: 99,
            ..held(at(10))
        });
        world.leases().change(12, None, &other).expect("memory");
        let opened = world.opened();
        let shown = run(&opened, Output::Text).expect("memory");
        assert!(
            shown.contains("machine IDs  1 held, 1 released, 2 lost\n"),
            "{shown}"
        );
        let row = |machine: &str| {
            let mut lines = shown.lines().skip(7);
            lines
                .find(|line| line.trim_start().starts_with(machine))
                .expect(machine)
        };
        assert!(row("7 ").trim_start().starts_with("7  lost "), "{shown}");
        assert!(
            row("7 ").ends_with("  -"),
            "nothing is known of it: {shown}"
        );
        assert!(row("12 ").trim_start().starts_with("12  lost "), "{shown}");
        assert!(
            shown.ends_with("`store repair ID` recreates it\n"),
            "{shown}"
        );
        let json: Value =
            serde_json::from_str(&run(&opened, Output::Json).expect("memory")).expect("JSON");
        let expected = json!({
            "machine": 7, "state": "lost", "expiredSince": null, "host": "", "pid": 0, "claim": 0,
            "bound": "0", "boundTime": null, "lastChange": null,
        });
        assert_eq!(json["records"][2], expected);
    }

    #[test]
    fn with_another_layout_bounds_are_shown_as_positions() {
        let opened = world().opened_for(IdMeta::SNOWFLAKE);
        let shown = run(&opened, Output::Text).expect("memory");
        assert!(shown.contains("(not the configured one,"), "{shown}");
        assert!(shown.contains(&format!(" {} ", at(5))), "{shown}");
        assert!(!shown.contains("expired"), "{shown}");
    }

    #[test]
    fn an_empty_namespace_is_reported_as_empty() {
        let shown = run(&World::new().opened(), Output::Text).expect("memory");
        assert!(
            shown.ends_with("machine IDs  none was ever claimed\n"),
            "{shown}"
        );
    }
}
