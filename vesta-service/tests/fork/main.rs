//! A process that forks, is interrupted by signals, or loses system calls after building the service.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod filtered;
mod forked;
mod serials;
#[cfg(target_os = "linux")]
mod signals;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vesta_numbers::segment::{NewSegmentTag, SegmentService};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::contract::UnixMillis;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::ManualClock;
use vesta_service::{LocalIdService, MachineSource};
use vesta_testkit::namespace_of;

use forked::{forked, is_told};

const START: UnixMillis = UnixMillis(1_700_000_000_000);
const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// Checks that every kind of call is refused, from the first one on.
fn issues_nothing(service: &LocalIdService) {
    is_told(service.try_gen_id());
    is_told(service.gen_id());
    is_told(service.try_gen_run(1000));
    is_told(service.gen_ids(&mut [0; 100]));
}

fn fixed(machine: u64, folder: &Path) -> vesta_service::Builder {
    let builder = LocalIdService::builder().namespace(namespace_of(folder));
    builder
        .machine(MachineSource::Fixed(machine))
        .state_dir(folder)
}

/// With the real clock and the default layout, parent and child would share the rest of a second.
#[test]
fn forked_child_issues_no_id_and_its_parent_continues() {
    for populator in PopulatorKind::ALL {
        let folder = tempfile::tempdir().unwrap();
        let service = fixed(1, folder.path())
            .populator(populator)
            .build()
            .unwrap();
        let mut issued: HashSet<u64> = (0..10).map(|_| service.gen_id().unwrap()).collect();
        let in_child = forked(|| {
            issues_nothing(&service);
            // A new thread has read no clock yet.
            std::thread::scope(|scope| {
                scope
                    .spawn(|| issues_nothing(&service))
                    .join()
                    .expect("the same");
            });
            service.close();
        });
        assert!(in_child, "{}: see what the child said", populator.name());
        for _ in 0..100_000 {
            assert!(issued.insert(service.gen_id().expect("the parent goes on")));
        }
    }
}

/// The thread that alone uses the service may be in the middle of a call, and does not exist in the child.
#[test]
fn child_forked_beside_a_busy_thread_waits_for_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let service = fixed(1, folder.path()).build().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = service.try_gen_id();
            }
        });
        for _ in 0..100 {
            let in_child = forked(|| {
                issues_nothing(&service);
                service.close();
            });
            assert!(in_child, "see what the child said");
        }
        over.store(true, Ordering::Relaxed);
    });
    service.gen_id().expect("the parent goes on");
}

#[test]
fn child_forked_right_after_the_start_issues_no_id() {
    let folder = tempfile::tempdir().unwrap();
    let service = fixed(1, folder.path()).build().unwrap();
    assert!(
        forked(|| issues_nothing(&service)),
        "see what the child said"
    );
    service.gen_id().expect("the parent goes on");
}

#[test]
fn service_built_in_the_child_issues_ids_only_there() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The slot of a dropped service is reused.
    drop(fixed(3, folder.path()).build().unwrap());
    let services = [1, 2].map(|machine| fixed(machine, folder.path()).build().unwrap());
    services
        .iter()
        .for_each(|service| _ = service.gen_id().unwrap());
    let in_child = forked(|| {
        services.iter().for_each(issues_nothing);
        let own = fixed(1, other.path()).build().unwrap();
        own.gen_id().expect("it was built here");
        assert!(
            forked(|| issues_nothing(&own)),
            "see what the grandchild said"
        );
        own.gen_id().expect("it goes on");
    });
    assert!(in_child, "see what the child said");
}

#[test]
fn child_leaves_store_and_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(START);
    let builder = || {
        fixed(1, folder.path())
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
    };
    let files = || {
        let files = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path());
        let mut files: Vec<_> = files
            .map(|path| (std::fs::read(&path).unwrap(), path))
            .collect();
        files.sort();
        files
    };
    let service = builder().build().unwrap();
    service.gen_id().unwrap();
    let before = files();
    let mut service = Some(service);
    let in_child = forked(|| {
        let service = service.take().unwrap();
        issues_nothing(&service);
        clock.advance(2 * SECOND);
        issues_nothing(&service);
        assert_eq!(service.maintain(), None);
        issues_nothing(&service);
        service.close();
        drop(service);
    });
    assert!(in_child, "see what the child said");
    assert_eq!(files(), before, "nothing was written");
    let service = service.expect("the child had a copy");
    let refused = builder()
        .build()
        .expect_err("the parent still holds its machine ID");
    assert!(
        refused.is_configuration() || refused.to_string().contains("in use"),
        "{refused}"
    );
    clock.advance(SECOND);
    service.maintain();
    service.gen_id().expect("the parent goes on");
}

/// Both processes have the call with the position it reserved.
#[cfg(feature = "async")]
#[test]
fn call_that_waits_during_a_fork_gets_its_id_in_the_parent_only() {
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::{self, Thread};

    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(START);
    let service = fixed(1, folder.path())
        .layout(vesta_service::IdMeta::MIN_GRANULARITY)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    while service.try_gen_id().is_ok() {}
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut waits = Box::pin(service.gen_id_async());
    let mut dropped = Some(Box::pin(service.gen_id_async()));
    assert!(waits.as_mut().poll(&mut context).is_pending());
    let noop = &mut Context::from_waker(Waker::noop());
    assert!(
        dropped
            .iter_mut()
            .all(|call| call.as_mut().poll(noop).is_pending())
    );
    thread::park(); // until its timer ends: there is none in the child
    clock.advance(SECOND);
    let in_child = forked(|| {
        drop(dropped.take());
        match waits.as_mut().poll(&mut context) {
            Poll::Ready(refused) => is_told(refused),
            Poll::Pending => panic!("a call that waits in the child"),
        }
    });
    assert!(in_child, "see what the child said");
    let mut again = Context::from_waker(&waker);
    let id = waits.as_mut().poll(&mut again);
    assert!(matches!(id, Poll::Ready(Ok(_))), "{id:?}");
}

#[test]
fn forked_child_issues_no_segment_number_and_gives_none_back() {
    let store = Arc::new(MemorySegmentStore::new());
    let service = SegmentService::builder(store.clone()).build().unwrap();
    service
        .create(&NewSegmentTag::new("orders", 1000).unwrap())
        .unwrap();
    let orders = service.segment("orders").unwrap().clone();
    let before = orders.next().unwrap();
    let rows = service.tags().unwrap();
    let mut owned = Some(service);
    let in_child = forked(|| {
        is_told(orders.try_next());
        is_told(orders.next());
        is_told(orders.next_runs(5000));
        is_told(orders.lend());
        let service = owned.take().unwrap();
        is_told(service.segment("orders").and_then(|tag| tag.next()));
        is_told(service.segment("unknown"));
        assert_eq!(service.maintain(), None);
        drop(service);
    });
    assert!(in_child, "see what the child said");
    let service = owned.expect("the child had a copy");
    assert_eq!(service.tags().unwrap(), rows, "nothing went back");
    assert_eq!(orders.next().expect("the parent goes on"), before + 1);
}
