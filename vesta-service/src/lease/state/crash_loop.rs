//! A fleet that keeps crashing, event by event: the shipped state machine, with a store in memory
//! and simulated time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{Field, IdMeta, UnixMillis};

use super::{Action, Answer, Ask, Event, Findings, Machine, Now, Plan};
use crate::lease::{ClaimOrder, Leases, Snapshot, Timing};
use crate::sequence::Rules;
use crate::testing::MemoryStore;

const META: IdMeta = IdMeta::MAX_PEAK;
const BEGIN: UnixMillis = UnixMillis(1_800_000_000_000);
/// Time from a process's claim to its crash.
const LIFE: Duration = Duration::from_secs(30);
const STEADY: usize = 10;
const CRASHING: usize = 100;
const POOL: u64 = 1024;

/// The store, and a source of random numbers.
struct World {
    leases: Leases,
    /// Contents of the store, kept beside it: a search would read a thousand records each time.
    held: Option<Snapshot>,
    random: u128,
    refused: Vec<String>,
}

impl World {
    fn now(&mut self, monotonic: Duration) -> Now {
        self.random = self
            .random
            .wrapping_mul(0xda94_2042_e4dd_58b5_94d0_49bb_1331_11eb)
            | 1;
        let millis = u64::try_from(monotonic.as_millis()).expect("hours");
        let wall = UnixMillis(BEGIN.0 + millis);
        let tick = META.tick_at(wall).expect("inside the layout");
        let random = self.random ^ self.random >> 61;
        let jitter = u64::try_from(random >> 64).expect("64 bits");
        Now {
            monotonic,
            wall,
            wall_tick: tick,
            tick,
            suspect: false,
            random,
            jitter,
        }
    }

    fn answer(&mut self, ask: Ask, at: Duration) -> Answer {
        let (leases, held) = (&self.leases, &mut self.held);
        let answer = || {
            Ok(match ask {
                Ask::Namespace => Answer::Namespace(leases.open(&META.fingerprint())?),
                Ask::Clock => Answer::Clock(None),
                Ask::Survey(part) => {
                    let snapshot = match held {
                        Some(held) => held.clone(),
                        None => {
                            leases.open(&META.fingerprint())?;
                            held.insert(leases.snapshot()?).clone()
                        }
                    };
                    let (doubt, locals, own) = (None, BTreeMap::new(), Vec::new());
                    Answer::Survey(Arc::new(Findings {
                        server: None,
                        reaches_nothing: None,
                        doubt,
                        part: part.unwrap_or(0),
                        snapshot,
                        locals,
                        own,
                    }))
                }
                Ask::Doubt => Answer::Doubt(leases.look(at, Duration::ZERO)?),
                Ask::Amend(facts) => leases
                    .amend(&facts)?
                    .map_or(Answer::NoNamespace, Answer::Namespace),
                Ask::Record(machine) => Answer::Found(leases.record(machine)?),
                Ask::Write(machine, change) => {
                    let answer = leases.write_all(&[(machine, *change)]).swap_remove(0);
                    if let Some(held) = held {
                        held.read_again(leases, machine)?;
                    }
                    answer
                }
                Ask::IsFree(_) => Answer::Free(true),
                Ask::Keep(_) => Answer::Kept(true),
            })
        };
        answer().unwrap_or_else(Answer::Failed)
    }

    /// Lets a process take one step; returns when it is next due.
    fn step(&mut self, machine: &mut Machine, at: Duration) -> (Duration, Event) {
        let now = self.now(at);
        match machine.next(&now) {
            Action::Wait(until) => (until.max(at), Event::None),
            Action::Ask(ask) => {
                let answer = self.answer(ask, at);
                // A request takes a millisecond.
                let at = at + Duration::from_millis(1);
                let now = self.now(at);
                (at, machine.on_answer(answer, &now))
            }
            Action::Refused(error) => (at, Event::Refused(error)),
            Action::Stop => unreachable!("no process is stopped"),
        }
    }
}

/// With a window of 60 s and a grace of 10 min, the machine IDs would be used up after five
/// minutes.
#[test]
fn a_hundred_processes_that_crash_every_30_s_do_not_use_up_a_pool_of_1024() {
    let rules = Rules::new(META.bits(Field::Time), META.bits(Field::Seq), 0);
    let plan = Plan {
        timing: Timing::NETWORK,
        order: ClaimOrder::Stable,
        usual_window: Timing::NETWORK.window,
        doubtful_window: Timing::IN_MEMORY.window,
        ..Plan::sample(rules, Timing::NETWORK.window, POOL)
    };
    let leases = Leases::new(Arc::new(MemoryStore::new()), "default");
    let mut world = World {
        leases,
        held: None,
        random: 1,
        refused: Vec::new(),
    };
    let mut due: BinaryHeap<_> = (0..STEADY + CRASHING)
        .map(|n| Reverse((Duration::from_millis(n as u64), n)))
        .collect();
    let mut processes: Vec<_> = (0..STEADY + CRASHING)
        .map(|n| {
            let start_at = crc32fast::hash(format!("host-{n}").as_bytes()).into();
            Machine::new(
                Plan {
                    start_at,
                    ..plan.clone()
                },
                &world.now(Duration::ZERO),
            )
        })
        .collect();
    let mut ends = vec![None; processes.len()];
    let (mut starts, mut steady, mut longest) = (0, BTreeSet::new(), Duration::ZERO);
    let mut begun = vec![Duration::ZERO; processes.len()];
    while let Some(Reverse((at, number))) = due.pop() {
        if at > Duration::from_secs(12 * 60) {
            break;
        }
        if ends[number].is_some_and(|end| at >= end) {
            starts += 1; // a new container, which remembers nothing
            let host = format!("host-{number}-{starts}");
            let start_at = crc32fast::hash(host.as_bytes()).into();
            processes[number] = Machine::new(
                Plan {
                    start_at,
                    ..plan.clone()
                },
                &world.now(at),
            );
            (ends[number], begun[number]) = (None, at);
        }
        let (mut next, event) = world.step(&mut processes[number], at);
        match event {
            Event::Claimed(claimed) if number < STEADY => {
                assert!(
                    steady.insert(claimed.machine),
                    "each steady process claims once"
                );
            }
            Event::Claimed(claimed) => {
                assert!(!steady.contains(&claimed.machine), "it is in use");
                longest = longest.max(next - begun[number]);
                ends[number] = Some(next + LIFE);
            }
            Event::Refused(error) => world.refused.push(error.to_string()),
            Event::Fenced(_) | Event::WentBack(_) | Event::GivenUp(_) => {
                panic!("process {number} was alive")
            }
            Event::Broken(error) | Event::Unsure(error) => panic!("{error}"),
            Event::None | Event::Raised(_) | Event::Released(_) => {}
        }
        if let Some(end) = ends[number] {
            next = next.min(end);
        }
        due.push(Reverse((next, number)));
    }
    assert_eq!(world.held, world.leases.snapshot().ok());
    println!("{starts} starts after a crash, the slowest within {longest:?}");
    assert!(world.refused.is_empty(), "{:?}", world.refused);
    assert_eq!(steady.len(), STEADY);
    assert!(starts > 1100, "more than there are machine IDs: {starts}");
    assert!(longest < Duration::from_secs(30), "{longest:?}");
}
