//! Regions: disjoint machine IDs, and namespaces that cannot be confused.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::common::START;
use vesta_explain::{IdSet, overlap};
use vesta_service::options::Drive;
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{BuildError, IdError, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::namespace_of;

fn start(
    layout: IdMeta,
    source: MachineSource,
    folder: &Path,
) -> Result<LocalIdService, BuildError> {
    LocalIdService::builder()
        .layout(layout)
        .namespace(namespace_of(folder))
        .machine(source)
        .state_dir(folder)
        .clock(Arc::new(ManualClock::at(START)))
        .drive(Drive::ByHand)
        .build()
}

fn region(number: u64) -> IdMeta {
    IdMeta::MAX_PEAK.in_region(3, number).unwrap()
}

fn pool(store: &Arc<MemoryStore>) -> MachineSource {
    MachineSource::Pool {
        store: store.clone(),
        range: None,
    }
}

#[test]
fn two_regions_never_issue_the_same_id() {
    let folder = vesta_testkit::fast_folder();
    let mut seen = HashSet::new();
    for number in 0..8 {
        let store = Arc::new(MemoryStore::new());
        let service = start(region(number), pool(&store), folder.path()).unwrap();
        let machine = service.status().machine;
        assert!(
            region(number).machines().contains(&machine),
            "{machine} in region {number}"
        );
        for _ in 0..100 {
            assert!(seen.insert(service.gen_id().unwrap()));
        }
        for other in 0..8 {
            let set = |number| IdSet::of(&IdMeta::MAX_PEAK).region(3, number).unwrap();
            assert_eq!(
                overlap(&set(number), &set(other)).is_some(),
                number == other
            );
        }
    }
}

#[test]
fn a_namespace_belongs_to_one_region() {
    let (store, folder) = (Arc::new(MemoryStore::new()), vesta_testkit::fast_folder());
    drop(start(region(2), pool(&store), folder.path()).unwrap());
    for other in [
        region(3),
        IdMeta::MAX_PEAK,
        IdMeta::MAX_PEAK.in_region(4, 2).unwrap(),
    ] {
        let error = start(other, pool(&store), folder.path()).unwrap_err();
        assert!(matches!(error, BuildError::Fingerprint { .. }), "{error}");
        assert!(error.to_string().contains("region 2 of 8"), "{error}");
    }
    assert!(start(region(2), pool(&store), folder.path()).is_ok());
    // A state file belongs to one region too; in a namespace whose pool cannot have drawn its number.
    let folder = vesta_testkit::fast_folder();
    drop(start(region(2), MachineSource::Fixed(256), folder.path()).unwrap());
    assert!(start(IdMeta::MAX_PEAK, MachineSource::Fixed(256), folder.path()).is_err());
}

#[test]
fn machine_ids_outside_the_region_are_refused_with_the_valid_ones() {
    let (store, folder) = (Arc::new(MemoryStore::new()), vesta_testkit::fast_folder());
    let of = |range| MachineSource::Pool {
        store: store.clone(),
        range: Some(range),
    };
    for source in [
        MachineSource::Fixed(255),
        MachineSource::Fixed(384),
        MachineSource::Stateless(7),
        MachineSource::Reserved {
            store: store.clone(),
            id: 1023,
        },
        of(0..=1023),
        of(255..=300),
        of(300..=384),
    ] {
        let what = format!("{source:?}");
        let error = start(region(2), source, folder.path()).unwrap_err();
        let inside = matches!(
            error,
            BuildError::Setting(IdError::OutOfRange {
                min: 256,
                max: 383,
                ..
            })
        );
        assert!(inside, "{what}: {error}");
    }
    assert_eq!(
        start(region(2), of(300..=300), folder.path())
            .unwrap()
            .status()
            .machine,
        300
    );
}
