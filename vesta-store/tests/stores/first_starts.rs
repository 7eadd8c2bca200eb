//! The first start over a real store that may forget.

use vesta_service::lease::Leases;
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_testkit::fleet::store_url;
use vesta_testkit::namespace_of;

/// The other doubts that a database shows are tested beside each store: here the settings declare one.
#[test]
fn a_namespace_that_was_only_created_delays_no_first_start() {
    for kind in [
        #[cfg(feature = "mysql")]
        "mysql",
        #[cfg(feature = "postgres")]
        "postgres",
        #[cfg(feature = "redis")]
        "redis",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let namespace = namespace_of(folder.path());
        let store = vesta_store::open(&store_url(kind).parse().unwrap()).expect(kind);
        let leases = Leases::new(store.clone(), &namespace);
        leases.open(&IdMeta::MAX_PEAK.fingerprint()).expect(kind); // as `store init` does
        let start = |may_forget, machine| {
            LocalIdService::builder()
                .namespace(&namespace)
                .machine(MachineSource::Reserved {
                    store: store.clone(),
                    id: machine,
                })
                .state_dir(folder.path())
                .store_doubt(may_forget)
                .build()
                .expect(kind)
        };
        let first = start(true, 1);
        let doubt = first
            .status()
            .doubt
            .clone()
            .expect("the settings declare it");
        assert_eq!(doubt.reach, doubt.since, "{kind}");
        // A claim before the doubt may have a window that the store forgets.
        leases.clear_doubt().expect(kind);
        first.close();
        let aware = start(true, 2)
            .status()
            .doubt
            .clone()
            .expect("declared again");
        assert!(aware.reach > aware.since, "{kind}");
    }
}
