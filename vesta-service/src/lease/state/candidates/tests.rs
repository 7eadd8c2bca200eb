//! The order of candidates.

use super::*;

type Records = BTreeMap<u64, Record>;

const RULES: Rules = Rules::new(30, 4, 0);
const NOW: u64 = 1000;

fn at(tick: u64) -> u64 {
    RULES.position(tick)
}

fn held(owner: u128, until: u64) -> Record {
    Record {
        epoch: 1,
        owner,
        bound: at(until),
        ..Record::default()
    }
}

fn released(until: u64) -> Record {
    Record {
        released: true,
        ..held(0, until)
    }
}

fn tried(
    records: &Records,
    earlier: Option<&Records>,
    remembered: &[(u64, Record)],
    choice: Choice,
) -> Vec<u64> {
    tried_in(ClaimOrder::Stable, records, earlier, remembered, choice)
}

fn tried_in(
    order: ClaimOrder,
    records: &Records,
    earlier: Option<&Records>,
    remembered: &[(u64, Record)],
    choice: Choice,
) -> Vec<u64> {
    let local = |(machine, record): &(u64, Record)| Local {
        machine: *machine,
        record: record.clone(),
        is_damaged: false,
        elsewhere: Vec::new(),
    };
    let locals = remembered.iter().map(|it| (it.0, local(it))).collect();
    let survey = Survey {
        earlier,
        locals: &locals,
        order,
        ..survey(records, &choice)
    };
    survey.candidates().into_iter().map(|c| c.machine).collect()
}

fn survey<'a>(records: &'a Records, choice: &'a Choice) -> Survey<'a> {
    Survey {
        block: 0..=1023,
        records,
        earlier: None,
        watched: Duration::ZERO,
        watch: Duration::ZERO,
        locals: const { &BTreeMap::new() },
        choice,
        order: ClaimOrder::Stable,
        now: at(NOW),
        grace_ticks: 60,
        rules: &RULES,
        start_at: 6,
        random: 0,
        count: 1,
    }
}

#[test]
fn the_order_is_own_unused_released_expired() {
    let records = Records::from([
        (0, held(9, NOW - 61)),
        (1, held(8, NOW - 100)),
        (2, released(NOW - 5)),
        (3, held(7, NOW + 3)),
        (5, held(5, NOW + 3)),
    ]);
    let remembered = [(5, held(5, NOW + 2))];
    let order = tried(&records, Some(&records), &remembered, Choice::Any(0..=7));
    assert_eq!(order, [5, 6, 4, 7, 2, 1, 0]);
}

#[test]
fn unused_machine_ids_of_a_process_are_adjacent() {
    let (records, choice) = ([(7, held(9, NOW + 3))].into(), Choice::Any(0..=9));
    let several = Survey {
        count: 4,
        ..survey(&records, &choice)
    };
    let candidates = several.candidates();
    let machines: Vec<_> = candidates.iter().map(|it| it.machine).collect();
    assert_eq!(machines[..4], [4, 5, 6, 8]);
    // Another pool of the host may hold all of these, and the records do not show it.
    let mut others = machines[4..].to_vec();
    others.sort_unstable();
    assert_eq!(others, [0, 1, 2, 3, 9]);
}

#[test]
fn lowest_free_machine_id_comes_first_in_that_order() {
    let records = Records::from([
        (0, held(9, NOW + 3)),
        (2, released(NOW - 5)),
        (3, held(7, NOW - 100)),
        (5, held(5, NOW)),
    ]);
    let remembered = [(5, held(5, NOW))];
    let order = tried_in(
        ClaimOrder::Lowest,
        &records,
        Some(&records),
        &remembered,
        Choice::Any(0..=7),
    );
    assert_eq!(order, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn foreign_machine_id_is_claimed_only_if_named() {
    let records = Records::from([(1, held(Record::FOREIGN, NOW - 1_000))]);
    assert_eq!(
        tried(&records, Some(&records), &[], Choice::Any(1..=1)),
        [0; 0]
    );
    let named = Choice::Only {
        machine: 1,
        alone: false,
    };
    assert_eq!(tried(&records, Some(&records), &[], named), [1]);
}

#[test]
fn owner_is_expired_only_if_overdue_and_unchanged_while_watched() {
    let overdue = Records::from([(0, held(9, NOW - 61))]);
    assert_eq!(tried(&overdue, None, &[], Choice::Any(0..=0)), [0; 0]);
    let it_moved = Records::from([(0, held(9, NOW - 62))]);
    assert_eq!(
        tried(&overdue, Some(&it_moved), &[], Choice::Any(0..=0)),
        [0; 0]
    );
    assert_eq!(
        tried(&overdue, Some(&overdue), &[], Choice::Any(0..=0)),
        [0]
    );
    let in_use = Records::from([(0, held(9, NOW + 1))]);
    assert_eq!(
        tried(&in_use, Some(&in_use), &[], Choice::Any(0..=0)),
        [0; 0]
    );
}

#[test]
fn machine_ids_within_their_grace_come_last_in_any_order() {
    let records = Records::from([
        (0, held(9, NOW)),
        (1, held(8, NOW - 61)),
        (2, held(7, NOW - 59)),
        (4, held(6, NOW + 1)),
    ]);
    let pool = || Choice::Any(0..=4);
    assert_eq!(
        tried(&records, None, &[], pool()),
        [3],
        "they were not watched"
    );
    assert_eq!(tried(&records, Some(&records), &[], pool()), [3, 1, 2, 0]);
    let lowest = tried_in(ClaimOrder::Lowest, &records, Some(&records), &[], pool());
    assert_eq!(lowest, [1, 3, 0, 2]);
    let choice = pool();
    let survey = Survey {
        earlier: Some(&records),
        ..survey(&records, &choice)
    };
    let in_grace = survey
        .candidates()
        .into_iter()
        .map(|candidate| candidate.in_grace);
    assert_eq!(in_grace.collect::<Vec<_>>(), [false, false, true, true]);
}

#[test]
fn remembered_record_is_useless_after_another_claim() {
    let records = Records::from([(
        0,
        Record {
            epoch: 2,
            ..held(4, NOW + 3)
        },
    )]);
    let remembered = [(0, held(3, NOW))];
    assert_eq!(
        tried(&records, Some(&records), &remembered, Choice::Any(0..=0)),
        [0; 0]
    );
}

#[test]
fn released_record_with_a_future_bound_is_skipped() {
    let records = Records::from([(0, released(NOW + 1))]);
    assert_eq!(tried(&records, None, &[], Choice::Any(0..=0)), [0; 0]);
}

#[test]
fn only_the_named_machine_id_is_tried() {
    let records = Records::from([(2, released(NOW))]);
    assert_eq!(
        tried(
            &records,
            None,
            &[],
            Choice::Only {
                machine: 2,
                alone: false
            }
        ),
        [2]
    );
    assert_eq!(
        tried(
            &records,
            None,
            &[],
            Choice::Only {
                machine: 3,
                alone: false
            }
        ),
        [3]
    );
}
#[test]
fn waiting_helps_if_a_record_can_become_free_in_time() {
    for (choice, record, expected) in [
        (Choice::Any(0..=3), released(NOW + 30), true),
        (Choice::Any(0..=3), released(NOW + 31), false),
        (Choice::Any(0..=3), held(9, NOW + 30), true),
        (Choice::Any(0..=3), held(9, NOW + 31), false),
        (Choice::Any(3..=4), held(9, NOW + 30), false),
        (Choice::Any(0..=3), held(Record::FOREIGN, NOW - 100), false),
        (
            Choice::Only {
                machine: 2,
                alone: false,
            },
            held(9, NOW - 30),
            true,
        ),
        (
            Choice::Only {
                machine: 2,
                alone: false,
            },
            held(Record::FOREIGN, 0),
            true,
        ),
        (
            Choice::Only {
                machine: 1,
                alone: false,
            },
            held(9, NOW - 30),
            false,
        ),
    ] {
        let records = Records::from([(2, record)]);
        let survey = survey(&records, &choice);
        assert_eq!(
            survey.may_end_within(30),
            expected,
            "{choice:?}, {records:?}"
        );
    }
}

/// For any home slot and pool size.
#[test]
fn unused_machine_ids_come_up_once_in_an_order_that_varies() {
    let tried = |start_at, random, last| -> Vec<_> {
        let choice = Choice::Any(0..=last);
        let found = Survey {
            start_at,
            random,
            ..survey(&Records::new(), &choice)
        }
        .unused();
        found
            .into_iter()
            .map(|candidate| candidate.machine)
            .collect()
    };
    for last in 0..16 {
        for random in (0..400).chain([u64::MAX]) {
            let mut found = tried(random / 3, random, last);
            assert_eq!(found[0], random / 3 % (last + 1));
            found.sort_unstable();
            assert!(found.into_iter().eq(0..=last), "{random} on 0..={last}");
        }
    }
    let seconds: std::collections::HashSet<_> =
        (0..1000).map(|random| tried(7, random, 1023)[1]).collect();
    assert!(
        seconds.len() >= 999,
        "from the same home slot to everywhere"
    );
}

#[test]
fn first_unused_machine_id_depends_on_the_home_slot() {
    for (start_at, first) in [(0, 10), (3, 13), (4, 10), (7, 13)] {
        let choice = Choice::Any(10..=13);
        let found = Survey {
            start_at,
            ..survey(&Records::new(), &choice)
        }
        .candidates();
        assert_eq!(
            found.first().map(|candidate| candidate.machine),
            Some(first)
        );
    }
}
