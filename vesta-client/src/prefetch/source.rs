//! Source of a prefetch buffer, and the background tasks of one.

use std::ops::Deref;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use vesta_intf::{IdError, IdRun};

use super::{Prefetch, PrefetchBuffer};
use crate::fallback::Fallback;
use crate::remote::Remote;

/// Source of prefetched IDs.
pub(crate) enum Source {
    /// IDs; a successful fetch ends the fallback to the local service.
    Ids(Option<Arc<Fallback>>),
    /// Numbers of a segment tag.
    Tag(Arc<str>),
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
            Source::Tag(tag) => remote.next_ids(tag, count).await,
        }
    }
}

/// A prefetch buffer with its background tasks, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    buffer: Arc<PrefetchBuffer>,
    _tasks: JoinSet<()>,
}

impl Prefetcher {
    pub(crate) fn new(
        prefetch: &Prefetch,
        source: Source,
        remote: Arc<Remote>,
        runtime: &Handle,
    ) -> Self {
        let buffer = Arc::new(PrefetchBuffer::new(prefetch));
        let mut tasks = JoinSet::new();
        tasks.spawn_on(Arc::clone(&buffer).keep_filled(source, remote), runtime);
        tasks.spawn_on(Arc::clone(&buffer).drop_stale(), runtime);
        Self {
            buffer,
            _tasks: tasks,
        }
    }
}

impl Deref for Prefetcher {
    type Target = PrefetchBuffer;

    fn deref(&self) -> &PrefetchBuffer {
        &self.buffer
    }
}
