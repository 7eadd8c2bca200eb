//! Processes that are killed and restarted, and concurrent processes: this test program starts
//! itself, in a dedicated folder.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use vesta_service::clock::{Clock as _, ClockKind, SystemClock};
use vesta_service::lease::{Cas, ClaimOrder, Leases, Record, Timing};
use vesta_service::options::Drive;
use vesta_service::{BuildError, IdMeta, LocalIdService, MachineSource};
use vesta_store::Options;
use vesta_testkit::fleet::{Event, Ledger, Process, child};
use vesta_testkit::{full_or, namespace_of};

const IDS_PER_START: usize = 20_000;

/// How often a process is killed and restarted.
fn restarts() -> usize {
    full_or(10, 3)
}

// ---- the child ----

fn build(kind: &str, layout: &str, tuned: bool) -> Result<LocalIdService, BuildError> {
    let millis = Duration::from_millis;
    let folder = std::env::current_dir().expect("the test's");
    let mut builder = LocalIdService::builder().namespace(namespace_of(&folder));
    if tuned {
        builder = builder
            .clock_kind(ClockKind::Coarse)
            .pacing(true)
            .borrow_ahead(millis(1000));
    }
    let (builder, timing) = match layout {
        "" => (builder, None),
        "max-peak" => {
            let timing = Timing {
                window: millis(2000),
                renew_every: millis(600),
                request_timeout: millis(500),
                takeover_grace: millis(6000),
            };
            (builder.layout(IdMeta::MAX_PEAK), Some(timing))
        }
        "min-granularity" => {
            let timing = Timing {
                window: millis(300),
                renew_every: millis(100),
                request_timeout: millis(100),
                takeover_grace: millis(900),
            };
            (builder.layout(IdMeta::MIN_GRANULARITY), Some(timing))
        }
        other => panic!("no layout {other}"),
    };
    match kind {
        "pool" => {
            let store =
                vesta_store::open(&"sqlite:vesta-data/vesta.db".parse().unwrap()).expect("a store");
            builder
                .machine(MachineSource::Pool { store, range: None })
                .build()
        }
        // A shorter window: a fixed ID has to wait if its bound is too far ahead of the clock.
        "fixed" => match timing {
            Some(timing) => builder
                .timing(timing)
                .machine(MachineSource::Fixed(7))
                .build(),
            None => builder.machine(MachineSource::Fixed(7)).build(),
        },
        "stateless" => builder.machine(MachineSource::Stateless(7)).build(),
        other => panic!("no kind {other}"),
    }
}

/// Prints IDs until its output is closed.
#[test]
#[ignore = "the child process of the other tests"]
fn child() {
    let Some([kind, layout, tuned]) = child::task() else {
        return;
    };
    let out = &mut std::io::stdout().lock();
    Event::Started.say(out).unwrap();
    let ids = match build(&kind, &layout, tuned == "true") {
        Ok(ids) => ids,
        Err(error) => return Event::Refused(error.to_string()).say(out).unwrap(),
    };
    Event::Machine(ids.machine()).say(out).unwrap();
    let mut batch = vec![ids.gen_id().unwrap()];
    while Event::Ids(batch).say(out).is_ok() {
        batch = vec![0; 100];
        ids.gen_ids(&mut batch[..99]).unwrap();
        batch[99] = ids.gen_id().unwrap();
    }
}

// ---- the parent ----

fn start(folder: &Path, kind: &str, layout: &str) -> Process {
    start_with(folder, kind, layout, false)
}

fn start_with(folder: &Path, kind: &str, layout: &str, tuned: bool) -> Process {
    let task = [kind.to_owned(), layout.to_owned(), tuned.to_string()];
    let mut command = child::command("restarts::child", &task);
    command
        .current_dir(folder)
        .env("STATE_DIRECTORY", folder.join("vesta-data"));
    Process::start(command.stderr(Stdio::null()))
}

fn read(process: &mut Process, count: usize) {
    while process.ids.len() < count {
        process.until_ids();
    }
}

/// SIGKILL. IDs printed before count; an incomplete line does not.
fn killed(mut process: Process) -> Vec<u64> {
    process.kill();
    std::mem::take(&mut process.ids)
}

fn layout(name: &str) -> IdMeta {
    if name == "max-peak" {
        IdMeta::MAX_PEAK
    } else {
        IdMeta::MIN_GRANULARITY
    }
}

/// Returns the time from each start to the first ID.
fn kill_and_start_again(kind: &str, layout_name: &str) -> Vec<Duration> {
    kill_repeatedly(kind, layout_name, false)
}

fn kill_repeatedly(kind: &str, layout_name: &str, tuned: bool) -> Vec<Duration> {
    let folder = tempfile::tempdir().unwrap();
    let mut checker = Ledger::new(layout(layout_name));
    let mut times = Vec::new();
    let mut machines = HashSet::new();
    for start in 0..=restarts() {
        let mut running = start_with(folder.path(), kind, layout_name, tuned);
        times.push(running.until_first_id());
        machines.extend(running.machines.iter().copied());
        read(&mut running, IDS_PER_START);
        let ids = killed(running);
        checker
            .check(&ids)
            .unwrap_or_else(|duplicate| panic!("start {start}: {duplicate}"));
    }
    assert!(checker.ids > (restarts() * IDS_PER_START) as u64);
    println!(
        "{kind}, {layout_name}: {} IDs of {machines:?}, first ID after {times:.0?}",
        checker.ids
    );
    times
}

#[test]
fn no_id_repeats_when_a_pool_of_the_seconds_layout_is_killed_repeatedly() {
    let times = kill_and_start_again("pool", "max-peak");
    assert!(
        times.iter().all(|time| *time <= Duration::from_secs(1)),
        "{times:.0?}"
    );
}

#[test]
fn no_id_repeats_when_a_pool_of_the_milliseconds_layout_is_killed_repeatedly() {
    let times = kill_and_start_again("pool", "min-granularity");
    assert!(
        times.iter().all(|time| *time <= Duration::from_secs(1)),
        "{times:.0?}"
    );
}

/// Each restart advances by a window of 2 s; a start waits if its bound is more than 5 s ahead.
#[test]
fn no_id_repeats_when_a_fixed_id_of_the_seconds_layout_is_killed_repeatedly() {
    let times = kill_and_start_again("fixed", "max-peak");
    assert!(
        times.iter().all(|time| *time <= Duration::from_secs(4)),
        "{times:.0?}"
    );
}

#[test]
fn no_id_repeats_when_a_fixed_id_of_the_milliseconds_layout_is_killed_repeatedly() {
    let times = kill_and_start_again("fixed", "min-granularity");
    assert!(
        times.iter().all(|time| *time <= Duration::from_secs(1)),
        "{times:.0?}"
    );
}

/// Runs of threads, the coarse clock, reserved positions and borrowed ticks: all of them are ahead of
/// the issued IDs when the process is killed.
#[test]
fn no_id_repeats_when_a_process_ahead_of_the_clock_is_killed_repeatedly() {
    for (kind, layout) in [("pool", "min-granularity"), ("fixed", "max-peak")] {
        let times = kill_repeatedly(kind, layout, true);
        assert!(
            times.iter().all(|time| *time <= Duration::from_secs(5)),
            "{times:.0?}"
        );
    }
}

/// Shows that the state is needed, and that these tests would detect its absence.
#[test]
fn without_state_ids_do_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let mut checker = Ledger::new(IdMeta::MAX_PEAK);
    let found = (0..=restarts()).any(|_| {
        let mut running = start(folder.path(), "stateless", "max-peak");
        read(&mut running, IDS_PER_START);
        checker.check(&killed(running)).is_err()
    });
    assert!(found);
}

#[test]
fn two_processes_in_one_folder_get_different_machine_ids_without_any_configuration() {
    let folder = tempfile::tempdir().unwrap();
    // Both have started before either is awaited.
    let mut running = [(); 2].map(|()| start(folder.path(), "pool", ""));
    running
        .iter_mut()
        .for_each(|running| read(running, IDS_PER_START));
    assert_ne!(running[0].machines, running[1].machines);
    let mut checker = Ledger::new(IdMeta::MAX_PEAK);
    for running in running {
        checker.check(&killed(running)).unwrap();
    }
    assert!(folder.path().join("vesta-data/vesta.db").exists());
}

fn refusal(folder: &TempDir) -> String {
    start(folder.path(), "fixed", "").until_refused()
}

#[test]
fn the_same_fixed_id_twice_on_one_host_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path(), "fixed", "");
    first.until_ids();
    let reason = refusal(&folder);
    assert!(
        reason.contains("in use by another process; give this one another machine ID"),
        "{reason}"
    );
    read(&mut first, 1000);
    let mut checker = Ledger::new(IdMeta::MAX_PEAK);
    checker.check(&killed(first)).unwrap();
    let mut successor = start(folder.path(), "fixed", "");
    read(&mut successor, 1000);
    checker.check(&killed(successor)).unwrap();
}

#[test]
fn the_same_fixed_id_twice_in_one_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let service = || {
        LocalIdService::builder()
            .namespace(namespace_of(folder.path()))
            .machine(MachineSource::Fixed(7))
            .state_dir(folder.path())
            .build()
    };
    let first = service().unwrap();
    let second = service();
    assert!(
        matches!(second, Err(BuildError::BuiltTwice { machine: 7, .. })),
        "{second:?}"
    );
    first.gen_id().unwrap();
    drop(first);
    service().unwrap().gen_id().unwrap();
}

/// A service with a pool in the database of this folder.
fn pool(
    folder: &Path,
    namespace: &str,
    range: RangeInclusive<u64>,
) -> Result<LocalIdService, BuildError> {
    let store = vesta_store::open(
        &format!("sqlite:{}/vesta.db", folder.display())
            .parse()
            .unwrap(),
    )
    .expect("a store");
    LocalIdService::builder()
        .namespace(namespace)
        .machine(MachineSource::Pool {
            store,
            range: Some(range),
        })
        .claim_order(ClaimOrder::Lowest)
        .state_dir(folder)
        .drive(Drive::ByHand)
        .build()
}

#[test]
fn two_pools_of_one_host_never_hand_out_the_same_machine_id() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let namespace = namespace_of(folders[0].path());
    let [one, two, three] = [0, 1, 2].map(|number| folders[number].path());
    let first = pool(one, &namespace, 5..=6).unwrap();
    let second = pool(two, &namespace, 5..=6).unwrap();
    assert_eq!([first.machine(), second.machine()], [5, 6]);
    let error = pool(three, &namespace, 5..=6).unwrap_err();
    assert!(matches!(error, BuildError::Exhausted { .. }), "{error}");
    assert_eq!(
        pool(three, &namespace_of(three), 5..=6).unwrap().machine(),
        5
    );
    drop(first);
    assert_eq!(pool(three, &namespace, 5..=6).unwrap().machine(), 5);
    assert_eq!(
        pool(one, &namespace, 5..=6).unwrap().machine(),
        5,
        "its own last one"
    );
}

/// The process that lost it continues with another machine ID.
#[test]
fn a_lost_machine_id_is_free_for_another_pool_of_the_host() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let namespace = namespace_of(folders[0].path());
    let [one, two] = [0, 1].map(|number| folders[number].path());
    let first = pool(one, &namespace, 5..=6).unwrap();
    assert!(pool(two, &namespace, 5..=5).is_err());
    let store = vesta_store::open(
        &format!("sqlite:{}/vesta.db", one.display())
            .parse()
            .unwrap(),
    )
    .expect("a store");
    let leases = Leases::new(store, &namespace);
    let record = leases.record(5).unwrap().expect("it is held");
    let thief = Record {
        epoch: record.epoch + 1,
        owner: 99,
        attempt: 1,
        ..record.clone()
    };
    assert_eq!(leases.change(5, Some(&record), &thief).unwrap(), Cas::Done);
    let clock = SystemClock::new();
    while first.machine() == 5 {
        let pause = first.maintain().expect("it continues");
        clock.park(pause.min(Duration::from_millis(100)));
    }
    assert_eq!(first.machine(), 6);
    assert_eq!(pool(two, &namespace, 5..=5).unwrap().machine(), 5);
}

#[test]
fn a_fixed_id_reserved_in_two_databases_of_one_host_is_refused_in_the_second() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let namespace = namespace_of(folders[0].path());
    let reserved = |folder: &Path| {
        let store = vesta_store::open(
            &format!("sqlite:{}/vesta.db", folder.display())
                .parse()
                .unwrap(),
        )
        .expect("a store");
        LocalIdService::builder()
            .namespace(&namespace)
            .machine(MachineSource::Reserved { store, id: 7 })
            .state_dir(folder)
            .build()
    };
    let [one, two] = [0, 1].map(|number| folders[number].path());
    let first = reserved(one).unwrap();
    let error = reserved(two).unwrap_err();
    assert!(
        matches!(error, BuildError::BuiltTwice { machine: 7, .. }),
        "{error}"
    );
    drop(first);
    reserved(two).unwrap().gen_id().unwrap();
}

#[test]
fn disposable_numbers_differ_between_two_tables_of_one_host() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let start = |folder: &TempDir| {
        let url = format!("sqlite:{}/vesta.db", folder.path().display());
        let nodes = vesta_store::open_worker_nodes(&url.parse().unwrap(), &Options::default())
            .expect("a table");
        let builder = LocalIdService::builder();
        builder
            .machine(MachineSource::Disposable { nodes })
            .build()
            .unwrap()
            .machine()
    };
    assert_ne!(start(&folders[0]), start(&folders[1]));
}
