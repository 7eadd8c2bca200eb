//! Async calls: no runtime, and no position lost by a dropped call.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use vesta_testkit::namespace_of;

use crate::common::START;
use vesta_service::contract::AsyncIdService;
use vesta_service::options::{Drive, PopulatorKind};
use vesta_service::testing::ManualClock;
use vesta_service::{ErrorKind, IdMeta, LocalIdService, MachineSource};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Counts how often the task is woken.
struct Woken {
    count: AtomicUsize,
    thread: Thread,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// A minimal executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn fixed(layout: IdMeta, folder: &tempfile::TempDir) -> vesta_service::Builder {
    LocalIdService::builder()
        .layout(layout)
        .populator(PopulatorKind::Atomic)
        .namespace(namespace_of(folder.path()))
        .machine(MachineSource::Fixed(1))
        .state_dir(folder.path())
}

#[test]
fn batches_and_runs_go_over_many_ticks_without_a_runtime() {
    let folder = vesta_testkit::fast_folder();
    let ids = fixed(IdMeta::MIN_GRANULARITY, &folder).build().unwrap();
    let batch = block_on(AsyncIdService::gen_ids(&ids, 10_000)).unwrap();
    assert_eq!(batch.len(), 10_000);
    assert!(batch.is_sorted_by(|a, b| a < b));

    let runs = block_on(AsyncIdService::gen_runs(&ids, 10_000)).unwrap();
    let from_runs: Vec<u64> = runs.iter().flat_map(|run| run.iter()).collect();
    assert_eq!(from_runs.len(), 10_000);
    assert!(from_runs.is_sorted_by(|a, b| a < b) && from_runs[0] > batch[9_999]);
    assert!(
        runs.len() < 30,
        "{} runs cover no more than that many ticks",
        runs.len()
    );
}

#[test]
fn dropping_a_waiting_call_pushes_nothing_into_the_future() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let ids = fixed(IdMeta::MIN_GRANULARITY, &folder)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    let tick = [0; 1024].map(|_| ids.try_gen_id().unwrap());
    for _ in 0..1000 {
        let waiting = pin!(AsyncIdService::gen_id(&ids));
        assert!(
            waiting
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    clock.advance(Duration::from_millis(1));
    assert_eq!(
        ids.try_gen_id().unwrap(),
        tick[1023] + 1024,
        "the very next position"
    );
}

/// Each holds a place in line, so none has to retry, and none is overtaken by another one that is polled first.
#[test]
fn waiting_calls_are_served_in_the_order_of_arrival_and_woken_once() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let ids = fixed(IdMeta::MIN_GRANULARITY, &folder)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
        .unwrap();
    let tick = [0; 1024].map(|_| ids.try_gen_id().unwrap());
    let woken = Arc::new(Woken {
        count: AtomicUsize::new(0),
        thread: thread::current(),
    });
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut calls: Vec<_> = (0..100)
        .map(|_| Box::pin(AsyncIdService::gen_id(&ids)))
        .collect();
    for call in &mut calls {
        assert!(call.as_mut().poll(&mut context).is_pending());
    }
    drop(calls.remove(70));
    clock.advance(Duration::from_millis(1));
    while woken.count.load(Ordering::SeqCst) < calls.len() {
        thread::park();
    }
    let late = ids.try_gen_id().unwrap();
    let mut served: Vec<_> = calls
        .iter_mut()
        .rev()
        .map(|call| match call.as_mut().poll(&mut context) {
            Poll::Ready(id) => id.unwrap(),
            Poll::Pending => panic!("it was woken in time"),
        })
        .collect();
    served.reverse();
    let step = ids.meta().step();
    let first = tick[1023] + step;
    let places = (0..100).filter(|place| *place != 70);
    assert!(
        served
            .iter()
            .copied()
            .eq(places.map(|place| first + place * step))
    );
    assert_eq!(late, first + 100 * step);
    assert_eq!(ids.status().positions_lost_total, 1, "no call came for it");
}

#[test]
fn a_wait_longer_than_allowed_ends_at_once_with_a_delay() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let ids = fixed(IdMeta::MAX_PEAK, &folder)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .pacing(false)
        .max_wait(Duration::from_millis(900))
        .build()
        .unwrap();
    while ids
        .try_gen_run(u32::MAX)
        .or_else(|_| ids.try_gen_run(1))
        .is_ok()
    {}
    let error = block_on(AsyncIdService::gen_id(&ids)).unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

/// Outcome of a flood of batches: those that may wait complete, the others are refused before they
/// have cost more than a tick.
#[test]
fn excess_batches_are_refused_at_once_and_the_others_served() {
    let folder = vesta_testkit::fast_folder();
    let clock = ManualClock::at(START);
    let ids = fixed(IdMeta::MIN_GRANULARITY, &folder)
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .max_wait(Duration::from_millis(40))
        .build()
        .unwrap();
    let waker = Arc::new(Woken {
        count: AtomicUsize::new(0),
        thread: thread::current(),
    });
    let mut batches: Vec<_> = (0..50)
        .map(|_| Box::pin(AsyncIdService::gen_runs(&ids, 5 * 1024)))
        .collect();
    let (mut served, mut refused) = (Vec::new(), 0);
    for tick in 0.. {
        batches.retain_mut(|batch| {
            let waker = Waker::from(waker.clone());
            match batch.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => true,
                Poll::Ready(Ok(runs)) => {
                    served.extend(runs);
                    false
                }
                Poll::Ready(Err(error)) => {
                    assert_eq!(error.kind(), ErrorKind::SequenceUsedUp);
                    let retry_after = error.retry_after().unwrap();
                    assert!(
                        tick == 0 && retry_after > Duration::from_millis(10),
                        "{error}"
                    );
                    refused += 1;
                    false
                }
            }
        });
        if batches.is_empty() {
            break;
        }
        clock.advance(Duration::from_millis(1));
        while waker.count.load(Ordering::SeqCst) < batches.len() {
            thread::park();
        }
        waker.count.store(0, Ordering::SeqCst);
    }
    served.sort_by_key(|run| run.first);
    assert!(
        served
            .windows(2)
            .all(|two| two[0].iter().last() < Some(two[1].first))
    );
    let total: u32 = served.iter().map(|run| run.count).sum();
    // A timeout of 20 ms for all of them together: four batches of 5 ms.
    assert_eq!((total, refused), (4 * 5 * 1024, 46));
    let lost = ids.status().positions_lost_total;
    assert_eq!(lost, 0, "a refused batch had taken nothing yet");
}
