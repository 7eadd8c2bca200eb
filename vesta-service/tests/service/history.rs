//! The origin of an ID: the history of claims, through a thousand kills.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, Leases, Origin};
use vesta_service::options::Drive;
use vesta_service::testing::{Answer, Intercept, ManualClock, MemoryStore, Request};
use vesta_service::{IdMeta, LocalIdService, MachineSource};

const LAYOUT: IdMeta = IdMeta::MAX_PEAK;
const KILLS: usize = 1000;

/// A small pseudo-random number generator: the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A store that keeps everything except the history.
fn without_history(store: Arc<MemoryStore>) -> Intercept {
    Intercept::new(store, |request, store| match request {
        Request::Put { area, puts } if area.starts_with("history/") => {
            Ok(Answer::Done(vec![true; puts.len()]))
        }
        _ => request.send(store),
    })
}

/// Processes that start, generate IDs and are killed. Returns each ID with the machine ID and the epoch
/// of its process.
fn killed_a_thousand_times(
    store: &Arc<dyn KvStore>,
    clock: &ManualClock,
) -> BTreeMap<u64, (u64, u64)> {
    let mut random = Random(3);
    let mut made = BTreeMap::new();
    let mut alive: Vec<LocalIdService> = Vec::new();
    let mut kills = 0;
    while kills < KILLS {
        if alive.len() < 3 || alive.len() < 8 && random.below(2) == 0 {
            let source = MachineSource::Pool {
                store: Arc::clone(store),
                range: Some(0..=15),
            };
            let folder = vesta_testkit::fast_folder();
            let process = LocalIdService::builder()
                .layout(LAYOUT)
                .machine(source)
                .state_dir(folder.path())
                .clock(Arc::new(clock.clone()))
                .drive(Drive::ByHand)
                .build();
            alive.extend(process); // a pool that is used up for now is retried later
        }
        clock.advance(Duration::from_millis(random.below(20_000)));
        for process in &alive {
            process.maintain();
            let status = process.status();
            for _ in 0..random.below(40) {
                let Ok(id) = process.try_gen_id() else { break };
                let before = made.insert(id, (status.machine, status.epoch));
                assert_eq!(before, None, "twice");
            }
        }
        if !alive.is_empty() {
            let victim = usize::try_from(random.below(alive.len() as u64)).expect("it is small");
            // Without a clean stop: nothing is sealed, saved or released.
            std::mem::forget(alive.swap_remove(victim));
            kills += 1;
        }
    }
    made
}

/// The number of IDs of a namespace that are attributed to another claim than the one that generated them.
fn wrongly_attributed(store: &Arc<dyn KvStore>, made: &BTreeMap<u64, (u64, u64)>) -> usize {
    let leases = Leases::new(Arc::clone(store), "default");
    let claims: BTreeMap<_, _> = (0..=15)
        .map(|machine| (machine, leases.claims(machine).expect("memory")))
        .collect();
    let wrong = made.iter().filter(|(id, (machine, epoch))| {
        let fields = LAYOUT.unpack(**id).expect("an ID");
        let origin = Origin::of(&claims[&fields.machine], LAYOUT.position_of(&fields));
        !matches!(origin, Origin::Claim(claim) if fields.machine == *machine && claim.epoch == *epoch)
    });
    wrong.count()
}

fn clock() -> ManualClock {
    ManualClock::at(UnixMillis(1_767_225_600_000))
}

#[test]
fn every_id_is_attributed_to_its_process_across_a_thousand_kills() {
    let (store, clock): (Arc<dyn KvStore>, _) = (Arc::new(MemoryStore::new()), clock());
    let made = killed_a_thousand_times(&store, &clock);
    assert!(made.len() > 10_000, "{}", made.len());
    assert_eq!(wrongly_attributed(&store, &made), 0);

    // An ID that was never generated has no origin.
    let leases = Leases::new(store, "default");
    let claims = leases.claims(3).expect("memory");
    let last = claims.last().expect("it was claimed");
    assert!(claims.len() > 10, "{}", claims.len());
    assert!(matches!(
        Origin::of(&claims, last.bound),
        Origin::NotReserved(_)
    ));
    assert!(matches!(
        Origin::of(&claims, claims[0].from - 1),
        Origin::Skipped(_)
    ));
    assert_eq!(
        Origin::of(&leases.claims(99).expect("memory"), 1),
        Origin::NeverClaimed
    );
    assert!(
        claims
            .iter()
            .all(|claim| claim.pid == std::process::id() && !claim.version.is_empty())
    );
    assert!(
        claims
            .windows(2)
            .all(|two| two[0].claimed <= two[1].claimed && two[0].bound <= two[1].from)
    );
}

#[test]
fn a_claim_without_history_is_detected() {
    let (store, clock): (Arc<dyn KvStore>, _) =
        (Arc::new(without_history(Arc::default())), clock());
    let made = killed_a_thousand_times(&store, &clock);
    assert!(wrongly_attributed(&store, &made) > 1000);
}
