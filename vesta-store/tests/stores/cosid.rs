//! Imports of CosId's data in Redis, MySQL and ZooKeeper: its machine IDs are never handed out
//! again, and the numbers of its segments continue.
//!
//! The states were written by CosId's own scripts, statements and classes, and read back from the
//! stores.

mod mysql;
mod redis;
mod zookeeper;

use std::collections::BTreeSet;
use std::sync::Arc;

use vesta_explain::layouts;
use vesta_numbers::segment::{NextRange, SegmentStore as _};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::Leases;
use vesta_service::options::Drive;
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::import::{
    ForeignOwner, ForeignSegment, Legacy, Target, cosid_segments, machine_ids, plan, write,
};
use vesta_store::{OpenError, StoreUrl};

/// A dedicated location in a store, as CosId uses it.
trait Place {
    /// Its URL, with a read-only login if the store supports that.
    fn url(&self) -> String;

    /// A unique namespace.
    fn namespace(&self) -> String;

    /// Four machine IDs in use and one given back, out of five.
    fn hand_out(&self);

    /// Adds two machine IDs known only from the counter; `false` if there is no counter.
    fn count_on(&self) -> bool;

    /// Writes entries that CosId never writes. Returns their names in an error.
    fn damage(&self) -> Vec<String>;

    /// Creates the segments `order` with 2200 numbers handed out, `order@260131` with none, and `eu.item`
    /// with 15; and entries outside the namespace.
    fn segments(&self);

    /// Writes a segment that CosId never writes. Returns its name in an error.
    fn damage_segment(&self) -> String;
}

/// A location in each store for which this machine has a server.
fn places() -> impl Iterator<Item = Box<dyn Place>> {
    let stores = ["redis", "mysql", "zookeeper"].into_iter();
    stores
        .filter(|store| !vesta_testkit::lacks(store))
        .map(|store| -> Box<dyn Place> {
            match store {
                "redis" => Box::new(redis::Place::new()),
                "mysql" => Box::new(mysql::Place::new()),
                _ => Box::new(zookeeper::Place::new()),
            }
        })
}

const LAYOUT: IdMeta = layouts::COSID_JS;
const MAX_MACHINE: u64 = 7;

fn url(place: &dyn Place) -> StoreUrl {
    place.url().parse().expect("a URL")
}

fn owners(place: &dyn Place) -> Result<Vec<ForeignOwner>, String> {
    let namespace = place.namespace();
    let legacy = Legacy::CosId {
        namespace: &namespace,
        max_machine: MAX_MACHINE,
    };
    machine_ids(&url(place), legacy).map_err(said)
}

fn segments(place: &dyn Place) -> Result<Vec<ForeignSegment>, String> {
    cosid_segments(&url(place), &place.namespace()).map_err(said)
}

fn said(error: OpenError) -> String {
    match &error {
        OpenError::Store { source, .. } => assert!(source.is_permanent(), "{error}"),
        _ => panic!("{error}"),
    }
    error.to_string()
}

const GUARD: u64 = 300_000;

fn owner(machine: u64, host: &str, stamp: Option<u64>) -> ForeignOwner {
    let last_used = stamp.map(|stamp| UnixMillis(stamp + GUARD));
    ForeignOwner {
        machine,
        host: host.into(),
        last_used,
    }
}

/// The five machine IDs of [`Place::hand_out`].
fn five() -> Vec<ForeignOwner> {
    vec![
        owner(0, "10.0.0.0:8080", Some(1_769_832_060_123)),
        owner(1, "10.0.0.9:1234", Some(1_769_832_064_000)),
        owner(2, "10.0.0.2:8080", Some(1_769_832_062_000)),
        owner(3, "an instance that gave it back", Some(1_769_832_063_000)),
        owner(4, "10.0.0.4:8080", Some(1_769_832_004_000)),
    ]
}

#[test]
fn every_machine_id_that_was_handed_out_is_found() {
    for place in places() {
        place.hand_out();
        let mut expected = five();
        assert_eq!(
            owners(&*place).expect("a right state"),
            expected,
            "{}",
            place.url()
        );
        if place.count_on() {
            let unknown = [5, 6].map(|machine| owner(machine, "an unknown instance", None));
            expected.extend(unknown);
            assert_eq!(
                owners(&*place).expect("a right state"),
                expected,
                "{}",
                place.url()
            );
        }
    }
}

#[test]
fn no_pool_hands_out_an_imported_machine_id() {
    for place in places() {
        place.hand_out();
        place.count_on();
        let found = owners(&*place).expect("a right state");
        let store = Arc::new(MemoryStore::new());
        let leases = Leases::new(store.clone(), "default");
        leases.open(&LAYOUT.fingerprint()).expect("memory");
        let seen = leases.snapshot().expect("memory");
        let now = UnixMillis(1_769_832_065_000);
        let (namespace, floor) = (seen.namespace.uuid, seen.namespace.floor);
        let target = Target {
            layout: LAYOUT,
            namespace,
            floor,
            now,
        };
        let mut numbers = 1..;
        let planned = plan(&found, &seen.records, &target, || {
            numbers.next().expect("endless")
        });
        write(&leases, &seen, planned.expect("it fits the layout")).expect("memory");
        let bound = leases.record(1).expect("memory").expect("a record").bound;
        let covered = LAYOUT
            .tick_at(UnixMillis(1_769_832_064_000 + GUARD))
            .expect("inside");
        assert!(
            bound >= covered << LAYOUT.spec().seq_bits,
            "five minutes after the last stamp"
        );

        let clock = Arc::new(ManualClock::at(now));
        let folder = tempfile::tempdir().expect("a folder");
        let claim = || {
            let pool = MachineSource::Pool {
                store: store.clone(),
                range: None,
            };
            let builder = LocalIdService::builder().layout(LAYOUT).machine(pool);
            let builder = builder.state_dir(folder.path()).clock(clock.clone());
            builder.drive(Drive::ByHand).build()
        };
        let claims: Vec<_> = std::iter::from_fn(|| claim().ok()).collect();
        let claimed: BTreeSet<_> = claims.iter().map(|ids| ids.status().machine).collect();
        let imported: BTreeSet<_> = found.iter().map(|it| it.machine).collect();
        assert!(
            claimed.is_disjoint(&imported),
            "{claimed:?} and {imported:?}"
        );
        assert_eq!(
            claimed.len() + imported.len(),
            8,
            "all the others, and none is left"
        );
        assert_eq!(claims.len(), claimed.len());
    }
}

#[test]
fn malformed_machine_ids_are_refused_and_named() {
    for place in places() {
        place.hand_out();
        let named = place.damage();
        let said = owners(&*place).expect_err("refused");
        assert!(
            said.contains("unexpected entries (not written by CosId): "),
            "{said}"
        );
        for name in named {
            assert!(said.contains(&name), "{name}: {said}");
        }
    }
}

#[test]
fn missing_data_is_reported() {
    for place in places() {
        for said in [owners(&*place).map(drop), segments(&*place).map(drop)] {
            let said = said.expect_err("nothing");
            let nothing = said.contains("found in CosId's namespace")
                && said.contains("check `cosid.namespace`");
            assert!(nothing || said.contains("no table cosid"), "{said}");
        }
        place.hand_out();
        place.segments();
        owners(&*place).expect("now there is something");
        segments(&*place).expect("now there is something");
    }
}

#[test]
fn numbers_of_an_imported_segment_continue_above_the_last() {
    for place in places() {
        place.segments();
        let found = segments(&*place).expect("a right state");
        let name = |name: &str| format!("{}.{name}", place.namespace());
        let segment = |key: &str, last| ForeignSegment {
            key: name(key),
            last,
        };
        let expected = [("eu.item", 15), ("order", 2200), ("order@260131", 0)];
        let expected = expected.map(|(key, last)| segment(key, last));
        assert_eq!(found, expected, "{}", place.url());

        let tags = MemorySegmentStore::new();
        for segment in &found {
            assert!(
                tags.create(&segment.tag(100).expect("a right tag"))
                    .expect("memory")
            );
            let range = tags.next_range(&segment.key, 100).expect("memory");
            let last = segment.last;
            assert_eq!(
                range,
                NextRange::Numbers(last + 1..last + 101),
                "{}",
                segment.key
            );
        }
    }
}

#[test]
fn a_malformed_segment_is_refused_and_named() {
    for place in places() {
        place.segments();
        let named = place.damage_segment();
        let said = segments(&*place).expect_err("refused");
        assert!(
            said.contains(&format!(
                "(not written by CosId): {named}; correct or remove them"
            )),
            "{said}"
        );
    }
}
