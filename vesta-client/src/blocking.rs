//! Blocking client.

mod segment;
mod serial;

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{JoinHandle, ThreadId};
use std::time::SystemTime;

use tokio::runtime::{Builder as Runtime, Handle};
use tokio::sync::oneshot;
use vesta_intf::{Id, IdError, IdService, MAX_IDS_PER_CALL, MakeId};

use crate::client::{Client as AsyncClient, Stats};
use crate::fork;
use crate::remote::check_count;
use crate::trace::{OF_CALLER, Trace};

pub use segment::Segment;
pub use serial::SerialTag;

/// The blocking client of a server, usable from any thread. It implements [`IdService`], as
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
/// [`crate::Client`] there. The client's own background thread must not wait for itself: a call
/// there (from a tracing subscriber or a fallback service) that would have to wait is refused as
/// [`IdError::Invalid`].
#[derive(Debug, Clone)]
pub struct Client(Blocking<AsyncClient>);

/// An asynchronous client or handle, and the thread that runs its calls.
#[derive(Debug, Clone)]
struct Blocking<C> {
    inner: C,
    background: Arc<Background>,
}

#[derive(Debug)]
struct Background {
    runtime: Handle,
    id: ThreadId,
    /// Source of the headers that continue a caller's trace.
    trace: Option<Trace>,
    /// Process that started the thread.
    process: u32,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl<C: Clone> Blocking<C> {
    /// Runs a call on the background thread.
    fn wait_for<T, F>(&self, call: impl FnOnce(C) -> F) -> Result<T, IdError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, IdError>> + Send + 'static,
    {
        fork::check(self.background.process)?;
        if std::thread::current().id() == self.background.id {
            let reason = "the blocking client cannot wait on its own background thread";
            return Err(IdError::invalid("thread", reason));
        }
        let (answer, answered) = mpsc::sync_channel(1);
        let call = call(self.inner.clone());
        // Here, because the trace is known on this thread alone.
        let headers = self.background.trace.as_ref().map(Trace::now);
        let work = OF_CALLER.scope(headers.unwrap_or_default(), call);
        self.background.runtime.spawn(async move {
            let _ = answer.send(work.await);
        });
        // Bounded by the deadline of the call; nothing that blocks runs on the background thread.
        answered.recv().unwrap_or_else(|_| Err(stopped_early()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else {
            return;
        };
        // Ends the thread, which waits for this sender to be dropped.
        drop(stop);
        if std::thread::current().id() != self.id && fork::check(self.process).is_ok() {
            let _ = thread.join();
        }
    }
}

impl Client {
    pub(crate) fn start(
        build: impl FnOnce() -> Result<AsyncClient, IdError>,
    ) -> Result<Self, IdError> {
        let runtime = Runtime::new_current_thread()
            .enable_all()
            .build()
            .map_err(cannot_start)?;
        let client = {
            let _inside = runtime.enter();
            build()
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                // Dropping it directly would panic inside another runtime.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new()
            .name("vesta-client".into())
            .spawn(move || _ = runtime.block_on(stopped))
            .map_err(cannot_start)?;
        let id = thread.thread().id();
        let (process, thread) = (fork::watched_process(), Some((stop, thread)));
        let trace = client.trace();
        let background = Arc::new(Background {
            runtime: handle,
            id,
            trace,
            process,
            thread,
        });
        Ok(Self(Blocking {
            inner: client,
            background,
        }))
    }

    /// Statistics since the start of the client.
    pub fn stats(&self) -> Stats {
        self.0.inner.stats()
    }
}

vesta_intf::inherent_calls!(Client);

impl IdService for Client {
    /// Waits for the client's deadline at most.
    #[inline]
    fn gen_id(&self) -> Result<u64, IdError> {
        match self.0.inner.take_one() {
            Some(id) => Ok(id),
            None => self
                .0
                .wait_for(|client| async move { client.gen_id_slow().await }),
        }
    }

    #[inline]
    fn try_gen_id(&self) -> Result<u64, IdError> {
        self.0.inner.try_gen_id()
    }

    /// # Errors
    /// [`IdError::OutOfRange`] if `out` is longer than 10,000; an empty one needs no server.
    fn gen_ids(&self, out: &mut [u64]) -> Result<(), IdError> {
        if out.is_empty() {
            return Ok(());
        }
        let count = u32::try_from(out.len()).unwrap_or(u32::MAX);
        check_count(count, MAX_IDS_PER_CALL)?;
        let ids = match self.0.inner.take_batch(count) {
            ids if ids.len() == out.len() => ids,
            ids => self
                .0
                .wait_for(move |client| async move { client.complete(ids, count).await })?,
        };
        out.copy_from_slice(&ids);
        Ok(())
    }

    fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        self.0.inner.try_gen_ids(out)
    }

    fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        self.0
            .wait_for(move |client| async move { client.exp_id(raw).await })
    }

    fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        let parts = *parts;
        self.0
            .wait_for(move |client| async move { client.make_id(&parts).await })
    }

    fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        self.0
            .wait_for(move |client| async move { client.trans_time(time).await })
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
    IdError::Internal {
        reason,
        source: None,
    }
}
