//! Blocking client.

mod segment;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{JoinHandle, ThreadId};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::runtime::{Builder as Runtime, Handle};
use tokio::sync::oneshot;
use vesta_intf::{AsyncIdService, Id, IdError, IdService, MAX_IDS_PER_CALL, MakeId};

use crate::builder::Builder;
use crate::client::{Client as AsyncClient, Stats};
use crate::remote::check_count;

pub use segment::Segment;

/// The blocking client of `vesta-server`, usable from any thread. It implements [`IdService`], as
/// the embedded service does. A clone is cheap and shares everything.
///
/// ```no_run
/// use std::sync::Arc;
/// use vesta_client::{Client, IdService};
///
/// let client = Client::builder().endpoint("http://127.0.0.1:50051").build_blocking()?;
/// let ids: Arc<dyn IdService> = Arc::new(client);
/// println!("{}", ids.gen_id()?);
/// # Ok::<(), vesta_client::IdError>(())
/// ```
///
/// One background thread does the network work. With prefetch, calls that find enough IDs in the
/// buffer never leave the calling thread.
///
/// `try_` calls never wait: see [`Client::try_gen_id`](crate::Client::try_gen_id).
///
/// Inside an async runtime a call blocks the runtime's thread as every blocking call does, for the
/// deadline at most; it cannot deadlock, as the result comes from a separate thread. Prefer
/// [`crate::Client`] there. Only on the client's own background thread (in a tracing subscriber or
/// a fallback service that calls back) a call that would have to wait is refused as
/// [`IdError::Invalid`].
#[derive(Clone)]
pub struct Client {
    client: AsyncClient,
    background: Arc<Background>,
}

struct Background {
    runtime: Handle,
    id: ThreadId,
    thread: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Background {
    /// Runs a call of the asynchronous client on the background thread.
    fn wait_for<T, F>(&self, call: F) -> Result<T, IdError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, IdError>> + Send + 'static,
    {
        if std::thread::current().id() == self.id {
            return Err(IdError::invalid(
                "thread",
                "the blocking client cannot wait on its own background thread",
            ));
        }
        let (answer, answered) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let _ = answer.send(call.await);
        });
        // Bounded by the deadline of the call; nothing that blocks runs on the background thread.
        answered.recv().unwrap_or_else(|_| Err(stopped_early()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.get_mut().take() else { return };
        // Ends the thread, which waits for this sender to be dropped.
        drop(stop);
        if std::thread::current().id() != self.id {
            let _ = thread.join();
        }
    }
}

impl Client {
    pub(crate) fn start(builder: Builder) -> Result<Self, IdError> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("vesta-client".into())
            .spawn(move || {
                let runtime = match Runtime::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = started.send(Err(cannot_start(error)));
                        return;
                    }
                };
                let client = {
                    let _inside = runtime.enter();
                    builder.build()
                };
                let _ = started.send(client.map(|client| (client, runtime.handle().clone())));
                let _ = runtime.block_on(stopped);
            })
            .map_err(cannot_start)?;
        let id = thread.thread().id();
        let (client, runtime) = start.recv().unwrap_or_else(|_| Err(stopped_early()))?;
        let thread = Mutex::new(Some((stop, thread)));
        Ok(Self { client, background: Arc::new(Background { runtime, id, thread }) })
    }

    /// Statistics since the start of the client.
    pub fn stats(&self) -> Stats {
        self.client.stats()
    }

    fn wait_for<T, F>(&self, call: impl FnOnce(AsyncClient) -> F) -> Result<T, IdError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, IdError>> + Send + 'static,
    {
        self.background.wait_for(call(self.client.clone()))
    }
}

impl IdService for Client {
    /// Waits for the client's deadline at most.
    #[inline]
    fn gen_id(&self) -> Result<u64, IdError> {
        match self.client.take_one() {
            Some(id) => Ok(id),
            None => self.wait_for(|client| async move { client.gen_id_slow().await }),
        }
    }

    #[inline]
    fn try_gen_id(&self) -> Result<u64, IdError> {
        self.client.try_gen_id()
    }

    /// # Errors
    /// [`IdError::OutOfRange`] if `out` has more than 10,000 places; an empty one needs no server.
    fn gen_ids(&self, out: &mut [u64]) -> Result<(), IdError> {
        if out.is_empty() {
            return Ok(());
        }
        let count = u32::try_from(out.len()).unwrap_or(u32::MAX);
        check_count(count, MAX_IDS_PER_CALL)?;
        let ids = match self.client.take_batch(count) {
            ids if ids.len() == out.len() => ids,
            ids => self.wait_for(move |client| async move { client.complete(ids, count).await })?,
        };
        out.copy_from_slice(&ids);
        Ok(())
    }

    fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        self.client.try_gen_ids(out)
    }

    fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        self.wait_for(move |client| async move { client.exp_id(raw).await })
    }

    fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        let parts = *parts;
        self.wait_for(move |client| async move { client.make_id(&parts).await })
    }

    fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        self.wait_for(move |client| async move { client.trans_time(time).await })
    }
}

fn cannot_start(error: std::io::Error) -> IdError {
    IdError::Internal {
        reason: format!("the client's background thread cannot start: {error}").into(),
        source: Some(Arc::new(error)),
    }
}

fn stopped_early() -> IdError {
    let reason = "the client's background thread has stopped".into();
    IdError::Internal { reason, source: None }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("blocking::Client").field(&self.client).finish()
    }
}
