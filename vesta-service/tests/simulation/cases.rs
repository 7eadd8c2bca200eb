//! Faults by number: each of these happened in a real project, and is repeated many times here.

use vesta_service::options::Drive;
use vesta_service::{BuildError, ErrorKind, IdError, IdMeta, MachineSource};
use vesta_testkit::{Rng, fast_folder, namespace_of};

use super::ledger::{Ledger, Progress, Stretch};
use super::plan::{Class, NAMESPACES, Plan, Source};
use super::run::rounds;
use super::store::Weather;
use super::time::{DAY, HostClock, MILLI, MINUTE, SECOND, Time, YEAR};
use super::world::World;

/// A world of nodes with the same set-up, and its folder.
fn world(
    layout: IdMeta,
    sources: &[Source],
    remembers: bool,
    seed: u64,
) -> (World, tempfile::TempDir) {
    let folder = fast_folder();
    let plan = Plan::simple(layout, sources, remembers);
    (
        World::new(plan, Rng::new(seed), folder.path(), false),
        folder,
    )
}

impl World {
    fn begin(&mut self, number: usize) -> Result<(), BuildError> {
        self.nodes[number].start(&self.plan, &self.shared)
    }

    /// One ID, recorded by the checker.
    fn make(&mut self, number: usize) -> Result<Stretch, IdError> {
        let node = &mut self.nodes[number];
        let id = node.service.as_ref().expect("it runs").gen_id()?;
        let (of_the_store, sender) = (node.is_of_the_store(), node.wire.sender);
        let window = |Stretch { machine, start, .. }| match of_the_store {
            true => self
                .shared
                .window(sender, NAMESPACES[0], machine, start)
                .positions(),
            false => (0, u64::MAX),
        };
        let taken = self.ledgers[0].id(id, &mut node.progress, window);
        Ok(taken.unwrap_or_else(|flaw| panic!("{flaw}")))
    }

    fn bound(&self, machine: u64) -> u64 {
        self.shared
            .record(NAMESPACES[0], machine)
            .map_or(0, |record| record.bound)
    }
}

/// hutool 1206, dolphinscheduler 6742: a clock that goes back slightly is tolerated, and IDs repeat.
#[test]
fn a_trembling_clock_repeats_nothing() {
    const BATCH: usize = 1000;
    for layout in [IdMeta::MIN_GRANULARITY, IdMeta::SNOWFLAKE] {
        let time = Time::starting(Plan::simple(layout, &[], false).start, false);
        let folder = fast_folder();
        let service = vesta_service::LocalIdService::builder()
            .layout(layout)
            .namespace(namespace_of(folder.path()))
            .machine(MachineSource::Fixed(1))
            .state_dir(folder.path())
            .clock(std::sync::Arc::new(HostClock::new(&time).trembling(100)))
            .drive(Drive::ByHand)
            .build()
            .expect("it starts");
        let (mut ledger, mut progress) = (Ledger::new(&layout), Progress::new(1));
        let mut take = |id| {
            ledger
                .id(id, &mut progress, |_| (0, u64::MAX))
                .unwrap_or_else(|flaw| panic!("{flaw}"));
        };
        let mut ids = [0; BATCH];
        let rounds = rounds(100_000);
        for round in 0..rounds {
            // Every fifth thousand is taken one by one.
            if round % 5 == 0 {
                (0..BATCH).for_each(|_| take(service.gen_id().expect("its lead is small")));
            } else {
                service.gen_ids(&mut ids).expect("its lead is small");
                ids.iter().for_each(|id| take(*id));
            }
            time.advance(MILLI);
            if round % 500 == 0 {
                service.maintain();
            }
        }
        assert!(ledger.issued >= rounds * 1000);
    }
}

/// Leaf 26, 84: every container is a new host, and the machine IDs are soon used up.
#[test]
fn many_short_lived_hosts_do_not_use_up_sixteen_machine_ids() {
    let (mut world, _folder) = world(IdMeta::MAX_PEAK, &[Source::Pool(15)], false, 9);
    for host in 0..rounds(10_000) {
        world
            .begin(0)
            .unwrap_or_else(|error| panic!("host {host}: {error}"));
        world.make(0).expect("it has just started");
        world.pass(8 * SECOND).expect("nothing is wrong");
        world.make(0).expect("it goes on");
        world.nodes[0].crash();
    }
}

/// uid-generator PR 88: each start takes a new number.
#[test]
fn starts_of_one_host_keep_its_machine_id() {
    let (mut world, _folder) = world(IdMeta::MIN_GRANULARITY, &[Source::Pool(1023)], true, 13);
    world.begin(0).expect("the first start");
    let own = world.make(0).expect("it has just started").machine;
    for start in 0..rounds(20_000) {
        if start % 2 == 0 {
            world.nodes[0].service = None;
        } else {
            // Its window is left unused; if it restarted at once, it would take another machine ID.
            world.nodes[0].crash();
            world.time.advance(11 * SECOND);
        }
        world
            .begin(0)
            .unwrap_or_else(|error| panic!("start {start}: {error}"));
        let made = world.make(0).expect("it has just started");
        assert_eq!(made.machine, own, "start {start}");
    }
    assert_eq!(world.shared.counts().of("first claims"), 1);
}

#[test]
fn successors_start_at_or_above_the_bound() {
    let (mut world, _folder) = world(IdMeta::MIN_GRANULARITY, &[Source::Pool(0); 2], false, 21);
    let mut before = 0;
    let rounds = rounds(200_000);
    for handover in 0..rounds {
        let node = usize::from(handover % 2 == 1);
        world
            .begin(node)
            .unwrap_or_else(|error| panic!("handover {handover}: {error}"));
        let count = 1 + world.rng.below(3);
        for nth in 0..count {
            let first = world.make(node).expect("it has just started");
            assert!(
                nth > 0 || first.start >= before,
                "{first:?} is below the bound {before:#x}"
            );
        }
        if world.rng.percent(30) {
            world.time.advance(MILLI);
            world.keep(node);
        }
        if world.rng.percent(80) {
            world.nodes[node].service = None;
        } else {
            world.nodes[node].crash();
            world.time.advance(2 * MINUTE);
        }
        before = world.bound(0);
        assert!(before >= world.ledgers[0].end(0));
    }
    assert!(world.shared.counts().of("handovers") >= rounds - 1);
}

/// Leaf 216, hazelcast 17975: a restart with the clock set back meanwhile.
#[test]
fn restarts_with_the_clock_set_back_repeat_nothing() {
    let sources = [Source::Fixed(7), Source::Pool(1023)];
    let (mut world, _folder) = world(IdMeta::SNOWFLAKE, &sources, true, 6);
    let (mut refused, mut waited) = (0, 0);
    let restarts = rounds(20_000);
    for restart in 0..restarts {
        let number = usize::from(restart % 2 == 1);
        world.nodes[number].crash();
        if number == 1 {
            world.nodes[number].lose_folder();
        }
        world.nodes[number].clock.correct();
        let back = world.rng.span(YEAR);
        world.nodes[number]
            .clock
            .step(-i64::try_from(back).expect("a year"));
        let began = world.time.now();
        match world.begin(number) {
            Ok(()) => waited += u64::from(world.time.now() > began + SECOND),
            Err(BuildError::ClockBehind { .. }) if number == 0 => {
                assert!(back > 20 * SECOND, "half a minute is waited for");
                refused += 1;
                world.nodes[number].clock.correct();
                world.begin(number).expect("the clock is right again");
            }
            // No crashed owner can be known to be dead while the clock is before its bound.
            Err(BuildError::Exhausted { .. }) if number == 1 => {
                world.nodes[number].clock.correct();
                world.time.advance(2 * MINUTE);
                world.begin(number).expect("the clock is right again");
            }
            Err(error) => panic!("restart {restart}: {error}"),
        }
        match world.make(number) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ClockBehind, "{error}"),
        }
        world.time.advance(SECOND);
    }
    let least = restarts / 100;
    assert!(
        refused > least && waited > least,
        "{refused} refused, {waited} waited"
    );
}

#[test]
fn steps_of_up_to_five_seconds_back_are_not_noticed() {
    for layout in IdMeta::PRESETS {
        let (mut world, _folder) = world(layout, &[Source::Pool(3)], false, 5);
        world.begin(0).expect("it starts");
        for step in 0..rounds(400_000) {
            world.nodes[0].clock.correct();
            let back = world.rng.within(0..=5 * SECOND);
            world.nodes[0]
                .clock
                .step(-i64::try_from(back).expect("seconds"));
            world
                .make(0)
                .unwrap_or_else(|error| panic!("step {step}: {error}"));
            let passes = world.rng.within(MILLI..=10 * MILLI);
            world.time.advance(passes);
            if step % 200 == 0 {
                world.keep(0);
            }
        }
        let status = world.nodes[0].service.as_ref().expect("it runs").status();
        assert_eq!((status.fenced_total, status.rehomed_total), (0, 0));
    }
}

/// tikv/pd 6768: a moment in the future is recorded, and persists.
#[test]
fn a_clock_that_jumps_far_ahead_leaves_nothing_behind() {
    for far in [DAY, 100 * YEAR] {
        let sources = [Source::Pool(7), Source::Pool(7)];
        let (mut world, _folder) = world(IdMeta::MIN_GRANULARITY, &sources, false, 35);
        (0..2).for_each(|number| world.begin(number).expect("it starts"));
        for jump in 0..1000 {
            let number = jump % 2;
            world.nodes[number]
                .clock
                .step(i64::try_from(far).expect("fits"));
            for _ in 0..world.rng.within(1..=4) {
                let span = world.rng.span(20 * SECOND);
                world.pass(span).expect("nothing is wrong");
                world
                    .make(number)
                    .unwrap_or_else(|error| panic!("jump {jump}: {error}"));
            }
            let millis = (world.time.now() + world.plan.window() + 6 * SECOND) / MILLI;
            let latest = world
                .plan
                .layout
                .tick_at(vesta_service::contract::UnixMillis(millis));
            let latest = latest.expect("2023") << world.plan.layout.spec().seq_bits;
            for machine in 0..=7 {
                assert!(
                    world.bound(machine) <= latest,
                    "a record lies far ahead of real time"
                );
            }
            world.nodes[number].clock.correct();
            world.pass(SECOND).expect("nothing is wrong");
            world
                .make(number)
                .unwrap_or_else(|error| panic!("after jump {jump}: {error}"));
            let status = world.nodes[number]
                .service
                .as_ref()
                .expect("it runs")
                .status();
            assert!(!status.clock_suspect && status.rehomed_total == 0);
        }
    }
}

/// An owner is silent until another process has its machine ID; the store then forgets the takeover, and the owner goes
/// on.
#[test]
fn an_owner_does_not_go_on_after_a_takeover_that_was_forgotten() {
    let mut went_on = 0;
    for seed in 0..rounds(2_000) {
        let folder = fast_folder();
        let mut plan = Plan::simple(IdMeta::MAX_PEAK, &[Source::Pool(0); 2], false);
        plan.class = Class::MayForget;
        let mut world = World::new(plan, Rng::new(seed), folder.path(), false);
        world.begin(0).expect("it starts");
        world.pass(20 * SECOND).expect("nothing is wrong");
        world.make(0).expect("it has its first window");
        let behind = i64::try_from(world.rng.below(8 * SECOND)).expect("seconds");
        world.nodes[0].clock.step(-behind);
        world.nodes[0].paused = true;

        let silent = world.rng.within(8 * SECOND..=20 * SECOND);
        world.time.advance(silent);
        let before = world.time.now();
        world.begin(1).expect("it waits for the bound");
        let used = world.rng.within(SECOND..=20 * SECOND);
        let until = world.time.now() + used;
        while world.time.now() < until {
            world.pass(SECOND / 2).expect("nothing is wrong");
            let _ = world.make(1); // its first window begins later
        }
        let span = world.time.now() - before + 1;
        assert!(world.shared.roll_back(NAMESPACES[0], span) > 0);
        let is_cut_off = world.rng.percent(50);
        world.nodes[1].wire.cut_off(is_cut_off);
        if !is_cut_off {
            world.nodes[1].crash();
        }

        world.nodes[0].paused = false;
        world.keep(0);
        let issued = world.ledgers[0].issued;
        for _ in 0..80 {
            for number in [0, 1] {
                if world.nodes[number].service.is_some() {
                    let _ = world.make(number);
                }
            }
            world
                .pass(SECOND / 2)
                .expect("the ledger shows what repeats");
        }
        went_on += u64::from(world.ledgers[0].issued > issued);
        world.nodes[0].clock.correct();
        world.pass(30 * SECOND).expect("the clock is right again");
        let again = world.make(0);
        assert!(again.is_ok(), "seed {seed}: {again:?}");
    }
    assert!(went_on > 0);
}

#[test]
fn lost_replies_cost_nothing() {
    let (mut world, _folder) = world(IdMeta::SNOWFLAKE, &[Source::Pool(3)], false, 46);
    let lossy = Weather {
        reply_lost: 100,
        ..Weather::default()
    };
    world.begin(0).expect("it starts");
    let mut bound = 0;
    let rounds = rounds(20_000);
    for _ in 0..rounds {
        world.shared.weather(lossy);
        world.time.advance(SECOND);
        world.keep(0);
        world.shared.weather(Weather::default());
        world.time.advance(SECOND);
        world.keep(0);
        let made = world.make(0).expect("the window is far from used up");
        let now = world.bound(made.machine);
        assert!(now > bound);
        bound = now;
    }
    let status = world.nodes[0].service.as_ref().expect("it runs").status();
    assert_eq!(
        (status.epoch, status.fenced_total, status.rehomed_total),
        (1, 0, 0)
    );
    assert!(world.shared.counts().of("replies lost") >= rounds);
}
