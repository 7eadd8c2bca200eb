//! Builder of the segment service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::store::SegmentStore;
use crate::clock::{AnyClock, Clock};
use crate::wait::Drive;

/// Builds a [`SegmentService`](super::SegmentService). Everything has a default but the store.
#[derive(Debug, Clone)]
pub struct SegmentBuilder {
    pub(crate) store: Arc<dyn SegmentStore>,
    pub(super) max_wait: Duration,
    pub(super) step_cap: u64,
    pub(super) refresh_every: Duration,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) require_durable: bool,
    pub(crate) clock: AnyClock,
    pub(super) drive: Drive,
}

impl SegmentBuilder {
    pub(super) fn new(store: Arc<dyn SegmentStore>) -> Self {
        Self {
            store,
            max_wait: Duration::from_secs(2),
            step_cap: 1_000_000,
            refresh_every: Duration::from_secs(60),
            state_dir: None,
            require_durable: false,
            clock: AnyClock::default(),
            drive: Drive::default(),
        }
    }

    /// The longest wait of one call. Default: 2 s.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// The most numbers that one request asks for, at least 1; a step in the table that is larger
    /// stays. Default: 1,000,000.
    pub fn step_cap(self, step_cap: u64) -> Self {
        Self { step_cap, ..self }
    }

    /// The interval at which the table is read for tags that were added, changed or removed, at least
    /// 1 ms. Default: 60 s.
    pub fn refresh_every(self, refresh_every: Duration) -> Self {
        Self {
            refresh_every,
            ..self
        }
    }

    /// A folder in which this host remembers up to where it was given numbers of each tag, so that also
    /// after a restart a database that went back below that is noticed. What was given in the last
    /// second before a kill may be missing. Default: none.
    pub fn state_dir(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: Some(folder.into()),
            ..self
        }
    }

    /// Gives out nothing from a store that may [forget](SegmentStore::doubt) what it acknowledged, or
    /// does not say. Default: `false`, which only warns of it.
    pub fn require_durable(self, require_durable: bool) -> Self {
        Self {
            require_durable,
            ..self
        }
    }

    /// Another clock than the system's. A clock that does not run by itself needs
    /// [`Drive::ByHand`].
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock: AnyClock::Other(clock),
            ..self
        }
    }

    /// The driver of fetches. Default: [`Drive::Thread`].
    pub fn drive(self, drive: Drive) -> Self {
        Self { drive, ..self }
    }
}
