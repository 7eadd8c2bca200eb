//! A run: executes the plan's faults at their times, and reports the outcome.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use vesta_testkit::{Rng, folder, is_full_run};

use crate::callers::Api;
use crate::fleet::{Fleet, SLOTS};
use crate::plan::{Fault, Kind, plan};
use crate::process::{Process, program};
use crate::servers::{Servers, Switch};
use crate::watch::Watch;
use crate::world::World;

/// Minimum number of IDs to compare per second and world: 500 million in a full run.
const ENOUGH: u64 = 240_000;
/// Minimum length in seconds of a run with time for replicas to be made and to take over.
const LONG: u64 = 60;

/// A setting of a run from the environment.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {value}")),
    )
}

mod torture {
    #[test]
    fn no_id_repeats_under_any_fault() {
        super::no_id_repeats_under_any_fault();
    }
}

/// Two servers with one machine ID, in two namespaces: outside the promise, and therefore a planted
/// fault.
#[test]
fn two_owners_of_a_machine_id_are_found() {
    let (folder, mut rng, watch) = (folder(), Rng::new(1), Arc::new(Watch::new()));
    // Both worlds have the same layout.
    let world = |name| World::new(name, Kind::Fixed, None, folder.path(), &mut Rng::new(1));
    let (world, other) = (Arc::new(world("planted")), world("planted-too"));
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let apis = [
        ("vesta-server", Api::Grpc(runtime.handle().clone())),
        ("vesta-rest", Api::Rest),
    ];
    let processes = apis.map(|(name, api)| {
        let of = if name == "vesta-rest" {
            &other
        } else {
            &*world
        };
        let state = of.state(name);
        fs::create_dir_all(&state).expect("a folder");
        let mut command = of.command(&program(name), &state, 7, &mut rng);
        Process::start(&mut command, name, &world, &watch, api)
    });
    while world.ledger().duplicates == 0 && watch.elapsed() < Duration::from_secs(60) {
        watch.over.within(Duration::from_millis(10));
    }
    watch.over.set();
    for process in processes {
        process.kill();
        assert!(process.join());
    }
    let ledger = world.ledger();
    let told = |part| ledger.findings[0].contains(part);
    assert!(
        ledger.duplicates > 0 && told("DUPLICATE") && told("vesta-server") && told("vesta-rest")
    );
    assert_eq!(ledger.disorders, 0, "{:?}", ledger.findings);
}

/// Kills everything at once, including processes about to be stopped.
#[test]
fn a_stop_after_a_kill_does_not_count() {
    let (folder, watch) = (folder(), Arc::new(Watch::new()));
    let world = World::new("killed", Kind::Fixed, None, folder.path(), &mut Rng::new(1));
    let world = Arc::new(world);
    let mut command = Command::new("sleep");
    let process = Process::start(command.arg("60"), "sleep", &world, &watch, Api::Rest);
    assert!(process.kill());
    assert!(!process.stop() && !process.kill());
    assert!(process.join());
    assert_eq!(world.ledger().findings, [] as [&str; 0]);
}

fn no_id_repeats_under_any_fault() {
    let (seed, seconds) = match is_full_run() {
        true => (RandomState::new().build_hasher().finish() >> 32, 300),
        false => (20, 20),
    };
    let seed = setting("VESTA_TEST_SEED").unwrap_or(seed);
    let seconds = setting("VESTA_TEST_SECONDS").unwrap_or(seconds);
    println!("torture of {seconds} s with VESTA_TEST_SEED={seed}");

    let (folder, servers, mut rng) = (folder(), Servers::start(seconds >= LONG), Rng::new(!seed));
    let mut world = |name, kind, url| {
        let world = World::new(name, kind, url, folder.path(), &mut rng);
        println!("{}", world.describe());
        Arc::new(world)
    };
    let mut worlds = vec![
        world("fixed", Kind::Fixed, None),
        world("sqlite", Kind::File, None),
    ];
    let mut switches = vec![None, None];
    if rustix::process::geteuid().is_root() {
        worlds.push(world("users", Kind::Users, None));
        switches.push(None);
    }
    for name in &servers.names {
        let kind = Kind::Network {
            can_fail_over: servers.can_fail_over(name),
            can_refuse: Servers::can_refuse(name),
        };
        let (url, switch) = servers.switch(name);
        worlds.push(world(name, kind, Some(url)));
        switches.push(Some(switch));
    }
    let kinds: Vec<Kind> = worlds.iter().map(|world| world.kind).collect();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let watch = Arc::new(Watch::new());
    let handle = runtime.handle().clone();
    let mut fleet = Fleet::new(worlds.clone(), folder.path(), watch.clone(), handle, rng);

    let length = seconds * 1000;
    for moment in plan(seed, &kinds, SLOTS, length) {
        watch
            .over
            .within(Duration::from_millis(moment.at).saturating_sub(watch.elapsed()));
        carry_out(moment.fault, &mut fleet, &switches, &watch);
    }
    watch
        .over
        .within(Duration::from_millis(length).saturating_sub(watch.elapsed()));
    fleet.end();
    drop(switches);
    watch.say("the end");
    println!("{}", World::head());
    for world in &worlds {
        println!("{}", world.row());
    }
    let ids: u64 = worlds.iter().map(|world| world.ledger().ids).sum();
    println!("{ids} IDs compared; VESTA_TEST_SEED={seed}");
    for world in &worlds {
        let ledger = world.ledger();
        assert!(
            ledger.findings.is_empty(),
            "{}: {:#?}",
            world.name,
            ledger.findings
        );
        assert!(
            ledger.ids >= 1000,
            "{}: {} IDs are no torture",
            world.name,
            ledger.ids
        );
    }
    assert!(
        ids >= ENOUGH * seconds * worlds.len() as u64,
        "{ids} IDs are too few"
    );
}

fn carry_out(fault: Fault, fleet: &mut Fleet, switches: &[Option<Switch>], watch: &Watch) {
    let store = |world: usize, command| {
        switches[world]
            .as_ref()
            .expect("a store on the network")
            .run(command);
    };
    match fault {
        Fault::Start { slot, keeps, clock } => return fleet.start(slot, keeps, clock),
        Fault::Twin(slot) => return fleet.start_twin(slot),
        Fault::Newcomer(slot) => return fleet.start_newcomer(slot),
        Fault::EndTwin(slot) => return fleet.end_twin(slot),
        Fault::Kill(slot) => return fleet.kill_slot(slot),
        Fault::Stop(slot) => {
            if fleet.send(slot, Process::stop) {
                fleet.worlds[slot.0].count(|counts| &mut counts.stops);
            }
        }
        Fault::Pause(slot) => {
            if fleet.pause(slot) {
                fleet.worlds[slot.0].count(|counts| &mut counts.pauses);
            }
        }
        Fault::Resume(slot) => fleet.resume(slot),
        Fault::Step(slot, offset) => fleet.step(slot, offset),
        Fault::LoseState(slot) => fleet.lose(slot),
        Fault::KillAll => fleet.kill_all(),
        Fault::StepAll(offset) => fleet.step_all(offset),
        Fault::PauseStore(world) => {
            store(world, "pause");
            fleet.worlds[world].count(|counts| &mut counts.outages);
        }
        Fault::ResumeStore(world) => store(world, "resume"),
        Fault::KillStore(world) => {
            store(world, "kill");
            fleet.worlds[world].count(|counts| &mut counts.outages);
        }
        Fault::StartStore(world) => store(world, "start"),
        Fault::Refuse(world) => {
            store(world, "refuse");
            fleet.worlds[world].count(|counts| &mut counts.refusing);
        }
        Fault::Accept(world) => store(world, "accept"),
        Fault::SetBack(world) => {
            if !fleet.set_back(world, watch) {
                return;
            }
        }
        Fault::Replica(world) => store(world, "replica"),
        Fault::Lag(world) => store(world, "lag"),
        Fault::FailOver(world) => {
            store(world, "kill");
            store(world, "promote");
            fleet.worlds[world].count(|counts| &mut counts.fail_overs);
        }
    }
    watch.say(&format!("{fault:?}"));
}
