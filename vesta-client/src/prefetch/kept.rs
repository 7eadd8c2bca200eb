//! A memory, what fills it, and the tasks that look after it.

use std::ops::Deref;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use vesta_intf::{IdError, IdRun};

use super::{Memory, Prefetch};
use crate::fallback::Fallback;
use crate::remote::Remote;

/// What fills a memory.
pub(crate) enum Source {
    /// IDs. The local service steps back when they come.
    Ids(Option<Arc<Fallback>>),
    /// Numbers of this segment key.
    Key(Arc<str>),
}

impl Source {
    pub(super) async fn fetch(&self, remote: &Remote, count: u32) -> Result<Vec<IdRun>, IdError> {
        match self {
            Source::Ids(fallback) => {
                let runs = remote.gen_runs(count).await?;
                if let Some(fallback) = fallback {
                    fallback.leave();
                }
                Ok(runs)
            }
            Source::Key(key) => remote.next_ids(key, count).await,
        }
    }
}

/// A memory with the tasks that look after it, which end when this is dropped.
pub(crate) struct Kept {
    memory: Arc<Memory>,
    tasks: [AbortHandle; 2],
}

impl Kept {
    pub(crate) fn new(
        prefetch: &Prefetch,
        source: Source,
        remote: Arc<Remote>,
        runtime: &Handle,
    ) -> Self {
        let memory = Arc::new(Memory::new(prefetch));
        let fill = Arc::clone(&memory).keep_filled(source, remote);
        let drop_stale = Arc::clone(&memory).drop_stale();
        let tasks = [runtime.spawn(fill).abort_handle(), runtime.spawn(drop_stale).abort_handle()];
        Self { memory, tasks }
    }
}

impl Deref for Kept {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
