//! A random walk through every event that can happen to a few hosts with a small shared pool.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use vesta_service::LocalIdService;
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::Record;
use vesta_service::testing::FlakyStore;

use super::Backend;
use super::world::{NAMESPACE, World, crash};

/// Three times as many in a full run.
const WALKS: u64 = 4;
const STEPS: u64 = 120;
const HOSTS: usize = 3;

/// Starts, stops, crashes, lost requests and replies, clocks stepped back: every ID is new, epochs
/// grow one by one, and only a release lowers a bound.
pub(super) fn no_id_repeats_and_no_bound_drops_whatever_happens(backend: &dyn Backend) {
    let mut fenced = 0;
    let times = if std::env::var_os("VESTA_TEST_FULL").is_some() {
        3
    } else {
        1
    };
    for seed in 0..times * WALKS {
        fenced += Walk::new(backend, seed).run();
    }
    assert!(fenced > 0, "the walks never reached a takeover");
}

struct Walk {
    world: World,
    seed: u64,
    dice: Rng,
    hosts: [Option<(LocalIdService, Arc<FlakyStore>)>; HOSTS],
    issued: HashSet<u64>,
    records: BTreeMap<u64, Record>,
    fenced: u64,
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

impl Walk {
    fn new(backend: &dyn Backend, seed: u64) -> Self {
        Self {
            world: World::new(backend),
            seed,
            dice: Rng(seed),
            hosts: Default::default(),
            issued: HashSet::new(),
            records: BTreeMap::new(),
            fenced: 0,
        }
    }

    /// Returns how many owners noticed that they had been fenced.
    fn run(mut self) -> u64 {
        self.world.raw();
        for step in 0..STEPS {
            self.step(step);
        }
        assert!(self.issued.len() > 1000, "the walk made IDs");
        self.fenced
    }

    fn step(&mut self, step: u64) {
        let host = self.dice.below(HOSTS as u64) as usize;
        match (self.hosts[host].take(), self.dice.below(12)) {
            (None, _) => self.start(host),
            (Some((service, connection)), 0) => crash(service, &connection),
            (Some((service, _)), 1) => drop(service),
            (Some((service, connection)), action) => {
                match action {
                    2 => connection.lose_replies(1 + self.dice.below(3) as u32),
                    3 => connection.fail_next(1 + self.dice.below(3) as u32),
                    4 => connection.go_away(),
                    5..7 => connection.come_back(),
                    7 => {
                        let back = self.dice.below(4000);
                        let now = self.world.clock.wall();
                        self.world.clock.set_wall(UnixMillis(now.0 - back));
                    }
                    // Long enough for the others to count as gone; this owner recovers from it,
                    // too.
                    8 => self.world.clock.advance(Duration::from_secs(70)),
                    _ => {}
                }
                self.world
                    .clock
                    .advance(Duration::from_millis(self.dice.below(2000)));
                let fenced_before = service.status().fenced_total;
                service.maintain();
                self.fenced += service.status().fenced_total - fenced_before;
                let mut batch = [0; 64];
                if let Ok(count) = service.try_gen_ids(&mut batch) {
                    for id in &batch[..count] {
                        assert!(
                            self.issued.insert(*id),
                            "seed {}, step {step}: {id} again",
                            self.seed
                        );
                    }
                }
                self.hosts[host] = Some((service, connection));
            }
        }
        self.look(step);
    }

    fn start(&mut self, host: usize) {
        let connection = self.world.connect();
        if self.dice.below(4) == 0 {
            connection.lose_replies(1);
        }
        let builder = self
            .world
            .pool_over(connection.clone(), &format!("host{host}"), 0..=1);
        // A pool with no free machine ID at the moment, or a clock too far behind, is not a fault.
        self.hosts[host] = builder.build().ok().map(|service| (service, connection));
    }

    /// Checks the changes of records since the last look.
    fn look(&mut self, step: u64) {
        let store = self.world.raw();
        for (machine, now) in store.list(NAMESPACE).expect("the store answers") {
            let at = format!(
                "seed {}, step {step}, machine ID {machine}: {now:?}",
                self.seed
            );
            if let Some(before) = self.records.insert(machine, now.clone()) {
                assert!(now.epoch >= before.epoch, "{at} after {before:?}");
                assert!(
                    now.bound >= before.bound || now.released,
                    "{at} after {before:?}"
                );
                let claimed = now.epoch > before.epoch;
                assert!(claimed || now.owner == before.owner || now.released, "{at}");
            }
        }
    }
}
