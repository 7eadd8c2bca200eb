//! Services under everything that can happen to them, against the simplest model there is: the set of
//! all IDs ever issued. Several hosts, each with a clock of its own, share a store that loses, delays
//! and answers late.

#[path = "model/check.rs"]
mod check;
#[path = "model/operation.rs"]
mod operation;
#[path = "model/planted.rs"]
mod planted;
#[path = "model/store.rs"]
mod store;
#[path = "model/world.rs"]
mod world;

use std::time::Duration;

use check::Counts;
use operation::{Operation, Setting, Source, Weights, custom, operation, setting};
use parking_lot::Mutex;
use planted::Flaw;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use vesta_intf::{FieldOrder, TimeUnit};
use vesta_service::{IdMeta, PopulatorKind, SequenceStart};
use world::World;

fn full() -> bool {
    std::env::var_os("VESTA_TEST_FULL").is_some()
}

/// So many operations a test on average.
const OPERATIONS: usize = 100;

/// Runs so many random tests; returns what they went through.
fn check(cases: u32, weights: Weights, flaw: Flaw) -> Result<Counts, String> {
    let counts = Mutex::new(Counts::default());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: if flaw == Flaw::Nothing { 4096 } else { 0 },
        ..Config::default()
    };
    let operations = proptest::collection::vec(operation(weights), 2..2 * OPERATIONS);
    let outcome = TestRunner::new(config).run(&(setting(), operations), |(setting, operations)| {
        let mut world = World::new(setting, flaw);
        let verdict = world.run(&operations);
        counts.lock().add(&world.counts);
        verdict.map_err(TestCaseError::fail)
    });
    outcome.map_err(|error| error.to_string())?;
    Ok(counts.into_inner())
}

fn run(about: &str, weights: Weights) -> Counts {
    let cases = if full() { 50_000 } else { 5_000 };
    let counts = check(cases, weights, Flaw::Nothing).unwrap_or_else(|flaw| panic!("{flaw}"));
    println!("{about}: {cases} cases, {counts:?}");
    assert!(counts.operations > u64::from(cases) * 90 && counts.ids > u64::from(cases) * 30);
    for (what, count) in [
        ("used up", counts.used_up),
        ("awaiting", counts.awaiting),
        ("exhausted", counts.exhausted),
        ("sealed", counts.sealed),
        ("retried", counts.retried),
        ("handovers", counts.handovers),
        ("releases", counts.releases_exact),
    ] {
        assert!(count > 100, "hardly met: {what}");
    }
    counts
}

#[test]
fn clocks_that_do_as_they_please() {
    let counts = run("clocks", Weights { clock: 4, store: 1, restart: 1 });
    assert!(counts.behind > 1_000);
}

#[test]
fn a_store_that_loses_delays_and_answers_late() {
    let counts = run("store", Weights { clock: 1, store: 4, restart: 1 });
    assert!(counts.awaiting > 10_000);
}

#[test]
fn services_that_stop_crash_and_start_again() {
    let counts = run("restarts", Weights { clock: 1, store: 1, restart: 4 });
    assert!(counts.handovers > 10_000);
}

#[test]
fn everything_at_once() {
    run("everything", Weights { clock: 2, store: 2, restart: 2 });
}

/// What random histories found, kept for good.
#[test]
fn histories_that_once_went_wrong() {
    use Operation::*;
    let ms = Duration::from_millis;
    let seconds = setting_of(custom(TimeUnit::Second, 30, 0, FieldOrder::TimeSeqMachine, 1 << 33));
    let millis = setting_of(IdMeta::MIN_GRANULARITY);
    let single = Setting { last_machine: 0, may_forget: true, ..seconds };
    let histories: [(&str, Setting, &[Operation]); 6] = [
        (
            "the time to come back was too early when nobody looked at the clock meanwhile",
            seconds,
            &[TryRun(0, 1), Step(0, -114), Retry(0)],
        ),
        (
            "and while the wall clock was not followed",
            seconds,
            &[Step(0, -9), TryRun(0, 1), Step(0, 3_660_000), Retry(0), Retry(0)],
        ),
        (
            "and by less than a millisecond, again and again, with the clock far behind",
            seconds,
            &[Step(0, -4_321), Run(0, ms(6)), Step(0, -2_345), Retry(0)],
        ),
        (
            "a stopped service asked to wait for the clock",
            millis,
            &[TryOne(0), Stop(0), Step(0, -86_400_000), TryOne(0), One(0)],
        ),
        (
            "two lines, one of which took over the machine ID of the other",
            Setting { last_machine: 0, ..seconds },
            &[
                Pass(ms(6_000)),
                Stop(0),
                Start(0, Source::TwoOfThePool, false),
                Many(0, 1),
                Run(0, ms(0)),
                TryRun(0, 1),
                Step(0, -12_000),
                TryMany(0, 1),
            ],
        ),
        (
            "a jump of an hour was judged by how often somebody had looked at the clock before",
            single,
            &[
                Retry(0),
                Run(0, ms(0)),
                Drift(0, ms(4_999)),
                Step(0, 2),
                Step(0, 3_600_000),
                TryOne(0),
            ],
        ),
    ];
    for (what, setting, history) in histories {
        let verdict = World::new(setting, Flaw::Nothing).run(history);
        assert_eq!(verdict, Ok(()), "{what}");
    }
}

fn setting_of(layout: IdMeta) -> Setting {
    Setting {
        layout,
        populator: PopulatorKind::Lock,
        start: SequenceStart::Zero,
        last_machine: 3,
        may_forget: false,
        on_disk: false,
    }
}

#[test]
fn every_planted_fault_is_noticed() {
    for flaw in Flaw::ALL {
        match check(2_000, Weights { clock: 1, store: 1, restart: 2 }, flaw) {
            Ok(counts) => panic!("not noticed: {flaw:?}, {counts:?}"),
            Err(told) => println!("{flaw:?}: {}", told.lines().next().unwrap_or_default()),
        }
    }
}
