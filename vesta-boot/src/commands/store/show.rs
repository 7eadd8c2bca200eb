//! `store show`: the namespace, and the owner of each machine ID.

use vesta_intf::UnixMillis;
use vesta_service::lease::{self, Namespace, Snapshot};

use super::opened::Opened;
use crate::answers::{Doubt, Long, MachineRecord, Pool};
use crate::error::Error;
use crate::output::{Output, Table, facts, value};
use crate::stores::state::State;
use crate::ticks::millis;

/// The namespace and its machine IDs.
pub(super) fn pool(opened: &Opened) -> Result<Pool, Error> {
    let snapshot = opened.snapshot()?;
    let Namespace {
        uuid,
        fingerprint,
        floor,
        window,
        doubt,
        writer,
    } = &snapshot.namespace;
    let doubt = doubt.as_ref().map(|it: &lease::Doubt| Doubt {
        since: Some(it.since.to_string()),
        reach: Some(it.reach.to_string()),
        longest_window_ms: Some(millis(it.window)),
        reason: it.why.clone(),
    });
    Ok(Pool {
        store: opened.store().describe(),
        doubt,
        writer: writer.clone(),
        namespace: opened.name().to_owned(),
        uuid: format!("{uuid:032x}"),
        fingerprint: fingerprint.clone(),
        layout: opened.is_of_our_layout().then(|| opened.layout.name()),
        longest_window_ms: millis(*window),
        floor: Long(*floor),
        floor_time: time(opened, *floor).filter(|_| *floor > 0),
        records: records(opened, &snapshot, opened.now()?),
        first_machine: None,
        last_machine: None,
    })
}

pub(super) fn run(opened: &Opened, output: Output) -> Result<String, Error> {
    let mut pool = pool(opened)?;
    match output {
        Output::Json => return Ok(format!("{}\n", value(&pool))),
        Output::Csv => {
            pool.records.iter_mut().for_each(with_bound_time);
            return Ok(Table::of(&pool.records).render(output));
        }
        Output::Text => {}
    }
    let machines = summary(&pool.records);
    let layout = pool
        .layout
        .unwrap_or("not the configured one, so that bounds are positions");
    let floor = pool.floor_time.unwrap_or(match pool.floor.0 {
        0 => "none".to_owned(),
        position => position.to_string(),
    });
    let durability = pool.doubt.map(|Doubt { since, reason, .. }| {
        let since = since.unwrap_or_default();
        format!(
            "it may forget what it acknowledged: {reason} (known since {since}; see store trust)"
        )
    });
    let lines = [
        ("store", Some(pool.store)),
        ("durability", durability),
        ("namespace", Some(pool.namespace)),
        ("uuid", Some(pool.uuid)),
        ("layout", Some(format!("{} ({layout})", pool.fingerprint))),
        ("floor", Some(floor)),
        ("machine IDs", Some(machines)),
    ];
    let lines: Vec<_> = lines
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?)))
        .collect();
    let mut out = facts(&lines);
    for record in &mut pool.records {
        with_bound_time(record);
        // With a space, at which a narrow table may fold it.
        for time in [&mut record.last_change, &mut record.bound_time] {
            *time = time.as_ref().map(|time| time.replace('T', " "));
        }
    }
    if !pool.records.is_empty() {
        out += &format!("\n{}", Table::of(&pool.records).render(output));
    }
    if pool.records.iter().any(|it| it.state == State::Lost.name()) {
        out += "\nlost: its record was deleted or replaced; `store repair ID` recreates it\n";
    }
    Ok(out)
}

/// The moment of a position; `None` in another layout, where the same number is another moment.
fn time(opened: &Opened, position: u64) -> Option<String> {
    opened
        .is_of_our_layout()
        .then(|| opened.layout.moment_at(position).to_string())
}

fn records(opened: &Opened, snapshot: &Snapshot, now: UnixMillis) -> Vec<MachineRecord> {
    // Before the epoch, or in another layout, no machine ID counts as expired.
    let now = opened
        .layout
        .position_at(now)
        .ok()
        .filter(|_| opened.is_of_our_layout());
    let record = |(machine, state): (u64, State)| {
        let found = snapshot.records.get(&machine);
        let last_change = found.map(|record| record.info_time.to_string());
        MachineRecord {
            machine,
            state: state.name(),
            expired_since: last_change.clone().filter(|_| state == State::Expired),
            host: found.map(|record| record.host.clone()),
            pid: found.map(|record| record.pid),
            claim: found.map(|record| record.epoch),
            bound: found.map(|record| Long(record.bound)),
            bound_time: found.and_then(|record| time(opened, record.bound)),
            last_change,
        }
    };
    State::all(snapshot, now.unwrap_or(0))
        .into_iter()
        .map(record)
        .collect()
}

/// Gives a bound without a moment its position, for tables.
fn with_bound_time(record: &mut MachineRecord) {
    let position = record.bound.map(|bound| bound.0.to_string());
    record.bound_time = record.bound_time.take().or(position);
}

/// `1 held, 2 released`.
fn summary(records: &[MachineRecord]) -> String {
    let count = |state: &str| records.iter().filter(|it| it.state == state).count();
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

machine  state                                  host        pid  claim  bound time                last change
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
            "machine": 7, "state": "lost",
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
