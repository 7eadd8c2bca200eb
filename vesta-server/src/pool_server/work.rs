//! Work of the pool server: bounded, and over when its caller is gone.
//!
//! Lists are long. They have separate permits, so that a caller that requests many of them, or reads none, does
//! not keep others from reading and changing single entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tonic::Status;
use vesta_intf::grpc::v1::{ListEntriesResponse, StoreEntry};
use vesta_net::Requests;

/// Requests to the store at a time; of these, lists.
const REQUESTS: usize = 64;
const LISTS: usize = 2;
/// Lists in memory at a time, until they are read.
const UNREAD: usize = 16;
/// Size of a message of a list, in bytes.
const PAGE: usize = 32 << 10;

#[derive(Debug)]
pub(super) struct Work {
    requests: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    unread: Arc<Semaphore>,
    limit: Duration,
}

/// Permission to keep a list in memory.
#[derive(Debug)]
pub(super) struct Turn {
    _of_connection: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Work {
    /// `limit` is the longest wait for a permit.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(REQUESTS)),
            lists: Arc::new(Semaphore::new(LISTS)),
            unread: Arc::new(Semaphore::new(UNREAD)),
            limit,
        }
    }

    /// Asks the store on a thread that may block, once there is a permit. Nothing was begun for a caller who leaves
    /// before.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        is_list: bool,
        ask: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        let permits = if is_list { &self.lists } else { &self.requests };
        let permit = Arc::clone(permits).acquire_owned();
        let permit = timeout(self.limit, permit).await.map_err(|_| busy())?;
        // Work that has begun keeps its permit to the end.
        let asked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            ask()
        });
        let asked = asked.await;
        asked.map_err(|panic| Status::unavailable(panic.to_string()))
    }

    /// Waits for the turn of a list: one on each connection, and a few in all.
    pub(super) async fn turn(&self, connection: Requests) -> Result<Turn, Status> {
        let turn = async {
            Turn {
                _of_connection: connection.long().await,
                _of_all: Arc::clone(&self.unread).acquire_owned().await.ok(),
            }
        };
        timeout(self.limit, turn).await.map_err(|_| busy())
    }
}

fn busy() -> Status {
    Status::resource_exhausted("the pool server is busy; try again")
}

/// The entries in pages. If the caller takes none of them for `limit`, they are dropped and the stream fails.
pub(super) fn paged(
    entries: Vec<(String, String)>,
    turn: Turn,
    limit: Duration,
) -> impl Stream<Item = Result<ListEntriesResponse, Status>> {
    let (pages, mut taken) = mpsc::channel(1);
    let complete = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&complete);
    // A separate task: a stream that its caller does not read is not polled.
    tokio::spawn(async move {
        let _turn = turn;
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let mut size = 0;
            let mut page = Vec::new();
            while let Some((key, value)) = entries.next_if(|_| size < PAGE) {
                size += key.len() + value.len();
                page.push(StoreEntry { key, value });
            }
            let page = ListEntriesResponse { entries: page };
            if !matches!(timeout(limit, pages.send(page)).await, Ok(Ok(()))) {
                return;
            }
        }
        complete.store(true, Ordering::Release);
    });
    async_stream::stream! {
        while let Some(page) = taken.recv().await {
            yield Ok(page);
        }
        if !ends.load(Ordering::Acquire) {
            yield Err(Status::deadline_exceeded("the list was not read in time"));
        }
    }
}
