//! Builder of the segment service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::store::SegmentStore;
use vesta_service::clock::Clock;
use vesta_service::inside::AnyClock;
use vesta_service::options::Drive;

/// Builds a [`SegmentService`](super::SegmentService). Everything except the store has a default.
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

    /// Maximum wait of one call. Default: 2 s.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// Maximum numbers per request, at least 1; a larger step in the table takes precedence.
    /// Default: 1,000,000.
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

    /// A folder in which this host records the end of the numbers it was given of each tag. So a
    /// database that was rolled back below that is detected even after a restart. Numbers given in the
    /// last second before a kill may be missing. Default: none.
    pub fn state_dir(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: Some(folder.into()),
            ..self
        }
    }

    /// Refuses a store that may [forget](SegmentStore::doubt) acknowledged writes, or cannot tell.
    /// Default: `false`, which only logs a warning.
    pub fn require_durable(self, require_durable: bool) -> Self {
        Self {
            require_durable,
            ..self
        }
    }

    /// A clock other than the system's. A clock that does not advance by itself needs [`Drive::ByHand`].
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
