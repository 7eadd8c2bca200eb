//! The keeper in a thread of its own, by the real clock, as it is and as a custom one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vesta_service::{
    Builder, Cas, Clock, Expect, IdMeta, IdService as _, LeaseStore, LocalIdService, MachineSource,
    MemoryStore, Namespace, Record, StoreError, SystemClock, Timing, UnixMillis,
};

/// A store that takes its time for each change.
#[derive(Debug, Default)]
struct Busy {
    store: MemoryStore,
    changes: AtomicU64,
}

impl LeaseStore for Busy {
    fn describe(&self) -> String {
        "busy".into()
    }
    fn timing(&self) -> Timing {
        let [window, renew_every] = [600, 100].map(Duration::from_millis);
        let takeover_grace = Duration::from_secs(60);
        Timing { window, renew_every, request_timeout: renew_every, takeover_grace }
    }
    fn open_namespace(&self, name: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        self.store.open_namespace(name, fingerprint)
    }
    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.store.list(namespace)
    }
    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.store.read(namespace, machine)
    }
    fn cas(
        &self,
        namespace: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        for _ in 0..10 {
            std::thread::yield_now();
        }
        let outcome = self.store.cas(namespace, machine, expect, new)?;
        self.changes.fetch_add(1, Ordering::SeqCst);
        Ok(outcome)
    }
}

/// The real clock, as a clock of one's own.
#[derive(Debug)]
struct Custom(SystemClock);

impl Clock for Custom {
    fn wall(&self) -> UnixMillis {
        self.0.wall()
    }
    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
    fn park(&self, duration: Duration) {
        self.0.park(duration);
    }
}

#[test]
fn it_renews_without_being_asked_and_the_end_waits_until_the_machine_id_is_given_back() {
    renews(LocalIdService::builder());
}

#[test]
fn it_does_so_by_a_custom_clock() {
    renews(LocalIdService::builder().clock(Arc::new(Custom(SystemClock::new()))));
}

fn renews(builder: Builder) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Busy::default());
    let service = builder
        .layout(IdMeta::MIN_GRANULARITY)
        .machine(MachineSource::Pool { store: store.clone(), range: Some(3..=3) })
        .state_dir(folder.path())
        .build()
        .unwrap();
    let first = store.read("default", 3).unwrap().unwrap();
    let mut last = 0;
    while store.changes.load(Ordering::SeqCst) < 10 {
        if let Ok(id) = service.gen_id() {
            last = id; // a busy machine may renew too late for once
        }
    }
    let renewed = store.read("default", 3).unwrap().unwrap();
    assert_eq!((renewed.epoch, renewed.owner), (first.epoch, first.owner), "the same lease");
    assert!(renewed.bound >= first.bound);
    service.close();
    let after = store.read("default", 3).unwrap().unwrap();
    assert!(after.released && after.owner == 0, "{after:?}");
    let last = service.exp_id(last).unwrap();
    assert!(after.bound > (last.time << 10 | last.seq));
}
