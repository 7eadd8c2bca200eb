//! Async calls: no runtime, tasks woken when numbers come, nothing taken by a dropped task.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use vesta_numbers::segment::SegmentService;
use vesta_service::contract::IdRun;
use vesta_service::{ErrorKind, IdError};

use crate::stores::{Mood, TestStore, by_hand, ids, next, patient};

/// Counts how often the task is woken.
struct Woken(AtomicU64, Thread);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.unpark();
    }
}

/// A minimal executor. Also returns how often the future was polled.
fn block_on<T>(future: impl Future<Output = T>) -> (T, u64) {
    let waker = Waker::from(Arc::new(Woken(AtomicU64::new(0), thread::current())));
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return (value, polls),
            Poll::Pending => thread::park(),
        }
    }
}

async fn next_async(service: &SegmentService, key: &str) -> Result<u64, IdError> {
    service.segment_async(key).await?.next_async().await
}

async fn runs_async(
    service: &SegmentService,
    key: &str,
    count: u32,
) -> Result<Vec<IdRun>, IdError> {
    service
        .segment_async(key)
        .await?
        .next_runs_async(count)
        .await
}

async fn ids_async(service: &SegmentService, key: &str, count: u32) -> Result<Vec<u64>, IdError> {
    Ok(ids(&runs_async(service, key, count).await?))
}

#[test]
fn batches_and_runs_need_no_runtime() {
    let store = TestStore::with(&[("orders", 10)]);
    let service = patient(&store).build().unwrap();
    let first = block_on(next_async(&service, "orders")).0.unwrap();
    let batch = block_on(ids_async(&service, "orders", 100_000)).0.unwrap();
    assert_eq!(batch.len(), 100_000);
    assert!(batch.is_sorted_by(|a, b| a < b) && batch[0] > first);
    let runs = block_on(runs_async(&service, "orders", 100_000)).0.unwrap();
    assert_eq!(
        runs.iter().map(|run| u64::from(run.count)).sum::<u64>(),
        100_000
    );
    assert!(
        runs[0].first > batch[99_999] && runs.len() < 100,
        "{} runs",
        runs.len()
    );
    let orders = block_on(service.segment_async("orders")).0.unwrap();
    assert!(block_on(orders.next_async()).0.is_ok());
    assert_eq!(block_on(orders.next_runs_async(5)).0.unwrap()[0].count, 5);
    let error = block_on(next_async(&service, "users")).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(block_on(orders.next_run_async(0)).0.is_err());
    assert!(
        block_on(runs_async(&service, "orders", 0))
            .0
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_waiting_task_is_woken_by_the_numbers_and_not_by_a_timer() {
    let store = TestStore::with(&[("orders", 10)]);
    store.close_gate("orders");
    let service = patient(&store).build().unwrap();
    service.refresh().unwrap();
    thread::scope(|scope| {
        let task = scope.spawn(|| block_on(next_async(&service, "orders")));
        store.wait_for_waiting(1);
        store.open_gate("orders");
        let (number, polls) = task.join().unwrap();
        assert_eq!(number.unwrap(), 1);
        assert!(polls <= 4, "polled {polls} times");
    });
}

#[test]
fn a_dropped_task_takes_no_number_and_is_not_woken() {
    let store = TestStore::with(&[("orders", 10)]);
    store.close_gate("orders");
    let service = patient(&store).build().unwrap();
    service.refresh().unwrap();
    let woken = Arc::new(Woken(AtomicU64::new(0), thread::current()));
    let waker = Waker::from(woken.clone());
    for _ in 0..100 {
        let mut future = pin!(next_async(&service, "orders"));
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    // While they waited, a read of the tags may have woken them.
    let before = woken.0.load(Ordering::SeqCst);
    store.open_gate("orders");
    assert_eq!(next(&service, "orders").unwrap(), 1);
    assert_eq!(woken.0.load(Ordering::SeqCst), before);
}

#[test]
fn max_wait_applies_to_tasks_too() {
    let store = TestStore::with(&[("orders", 10)]);
    let service = patient(&store)
        .max_wait(Duration::from_millis(1))
        .build()
        .unwrap();
    service.refresh().unwrap();
    store.close_gate("orders");
    let error = block_on(next_async(&service, "orders")).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AwaitingLease);
    store.open_gate("orders");
    store.set(Mood::Refuses);
    let error = block_on(next_async(&service, "no such tag")).0.unwrap_err();
    assert_ne!(
        error.kind(),
        ErrorKind::NotFound,
        "the tags have not been read"
    );
}

#[test]
fn closing_ends_waiting_tasks() {
    let store = TestStore::with(&[("orders", 10)]);
    store.close_gate("orders");
    let service = patient(&store).build().unwrap();
    thread::scope(|scope| {
        let task = scope.spawn(|| block_on(ids_async(&service, "orders", 5)).0);
        store.wait_for_waiting(1);
        service.close();
        assert_eq!(task.join().unwrap().unwrap_err().kind(), ErrorKind::Sealed);
        store.open_gate("orders");
    });
}

#[test]
fn driven_by_hand_a_task_performs_due_work_itself() {
    let store = TestStore::with(&[("orders", 10)]);
    let (service, _) = by_hand(&store);
    assert_eq!(block_on(next_async(&service, "orders")).0.unwrap(), 1);
    assert_eq!(
        block_on(ids_async(&service, "orders", 1000)).0.unwrap()[999],
        1001
    );
}
