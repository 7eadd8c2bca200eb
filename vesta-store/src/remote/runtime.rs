//! The runtime of an asynchronous client, kept inside its store: an embedding program needs no
//! runtime, and may call from inside one.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// A thread that drives the requests of one store.
#[derive(Debug)]
pub(crate) struct Background {
    /// `None` only during drop.
    runtime: Option<Runtime>,
}

/// A request was not answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {} ms", .0.as_millis())]
pub(crate) struct NoAnswer(pub(crate) Duration);

impl Background {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("vesta-store")
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime
            .as_ref()
            .expect("it is not being dropped")
            .spawn(task)
    }

    /// Waits for a request for at most `limit`, then abandons it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let task = self.spawn(async move {
            let _ = sender.send(request.await); // the receiver is gone if the request was abandoned
        });
        receiver.recv_timeout(limit).map_err(|_| {
            task.abort();
            NoAnswer(limit)
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background(); // allowed even where blocking is not
        }
    }
}
