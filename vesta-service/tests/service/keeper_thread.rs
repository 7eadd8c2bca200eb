//! The keeper in its own thread, with the real clock, as is and as a custom clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use vesta_service::clock::{Clock, SystemClock};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, Leases, Timing};
use vesta_service::testing::{Intercept, MemoryStore, Request};
use vesta_service::{Builder, ErrorKind, IdMeta, LocalIdService, MachineSource};

/// A store that is slow for each change, and counts the changes.
fn busy(changes: &Arc<AtomicU64>) -> Arc<dyn KvStore> {
    let [window, renew_every] = [600, 100].map(Duration::from_millis);
    let takeover_grace = Duration::from_secs(60);
    let changes = changes.clone();
    let store = Intercept::new(Arc::new(MemoryStore::new()), move |request, store| {
        if !matches!(request, Request::Put { .. }) {
            return request.send(store);
        }
        (0..10).for_each(|_| std::thread::yield_now());
        let done = request.send(store)?;
        changes.fetch_add(1, Ordering::SeqCst);
        Ok(done)
    });
    Arc::new(store.timing(Timing {
        window,
        renew_every,
        request_timeout: renew_every,
        takeover_grace,
    }))
}

/// The real clock, used as a custom clock.
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
fn the_keeper_renews_and_closing_waits_for_the_release() {
    renews(LocalIdService::builder());
}

#[test]
fn the_keeper_renews_with_a_custom_clock() {
    renews(LocalIdService::builder().clock(Arc::new(Custom(SystemClock::new()))));
}

fn renews(builder: Builder) {
    let folder = vesta_testkit::fast_folder();
    let changes = Arc::default();
    let store = busy(&changes);
    let leases = Leases::new(store.clone(), "default");
    let service = builder
        .layout(IdMeta::MIN_GRANULARITY)
        .machine(MachineSource::Pool {
            store: store.clone(),
            range: Some(3..=3),
        })
        .state_dir(folder.path())
        .build()
        .unwrap();
    let first = leases.record(3).unwrap().unwrap();
    let mut last = 0;
    while changes.load(Ordering::SeqCst) < 10 {
        if let Ok(id) = service.gen_id() {
            last = id; // a busy machine may occasionally renew too late
        }
    }
    let renewed = leases.record(3).unwrap().unwrap();
    assert_eq!(
        (renewed.epoch, renewed.owner),
        (first.epoch, first.owner),
        "the same lease"
    );
    assert!(renewed.bound >= first.bound);
    service.close();
    let after = leases.record(3).unwrap().unwrap();
    assert!(after.released && after.owner == 0, "{after:?}");
    let last = service.exp_id(last).unwrap();
    assert!(after.bound > (last.time << 10 | last.seq));
}

/// The real clock, until it makes the keeper panic.
#[derive(Debug)]
struct Failing(SystemClock, Arc<AtomicBool>);

impl Clock for Failing {
    fn wall(&self) -> UnixMillis {
        self.0.wall()
    }
    fn monotonic(&self) -> Duration {
        let of_the_keeper = std::thread::current().name() == Some("vesta-keeper");
        assert!(
            !of_the_keeper || !self.1.load(Ordering::SeqCst),
            "a planted panic"
        );
        self.0.monotonic()
    }
    fn park(&self, duration: Duration) {
        self.0.park(duration);
    }
}

#[test]
fn a_panic_of_the_keeper_seals_all_machine_ids_and_is_reported() {
    let folder = vesta_testkit::fast_folder();
    let fails = Arc::new(AtomicBool::new(false));
    let clock = SystemClock::new();
    let service = LocalIdService::builder()
        .layout(IdMeta::MIN_GRANULARITY)
        .machine(MachineSource::Pool {
            store: busy(&Arc::default()),
            range: Some(3..=7),
        })
        .machine_count(5)
        .state_dir(folder.path())
        .clock(Arc::new(Failing(SystemClock::new(), fails.clone())))
        .build()
        .unwrap();
    service.gen_id().unwrap();
    fails.store(true, Ordering::SeqCst);
    let until = clock.monotonic() + Duration::from_secs(60);
    while service.status().all.sealed.is_none() {
        assert!(
            clock.monotonic() < until,
            "not noticed: {:?}",
            service.status()
        );
        std::thread::yield_now();
    }
    assert_eq!(service.try_gen_id().unwrap_err().kind(), ErrorKind::Sealed);
    for machine in service.machines() {
        let said = machine.not_ready_because.expect("a reason");
        assert!(said.contains("its keeper ended by a panic"), "{said}");
    }
    service.close(); // no keeper is left to wait for
}
