//! Builder of the segment service.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::IdError;

use super::SegmentMode;
use super::core::Core;
use super::jobs::{Job, Jobs};
use super::registry::Registry;
use super::service::SegmentService;
use super::store::SegmentStore;
use crate::builder::{BuildError, Drive};
use crate::clock::{AnyClock, Clock, SystemClock};

/// Builds a [`SegmentService`]. Everything has a default but the store.
#[derive(Debug, Clone)]
pub struct SegmentBuilder {
    store: Arc<dyn SegmentStore>,
    mode: SegmentMode,
    max_wait: Duration,
    step_cap: u64,
    refresh_every: Duration,
    clock: Option<Arc<dyn Clock>>,
    drive: Drive,
}

impl SegmentBuilder {
    pub(super) fn new(store: Arc<dyn SegmentStore>) -> Self {
        Self {
            store,
            mode: SegmentMode::default(),
            max_wait: Duration::from_secs(2),
            step_cap: 1_000_000,
            refresh_every: Duration::from_secs(60),
            clock: None,
            drive: Drive::default(),
        }
    }

    /// In which order threads get their numbers. Default: [`SegmentMode::Strict`].
    #[must_use]
    pub fn mode(mut self, mode: SegmentMode) -> Self {
        self.mode = mode;
        self
    }

    /// The longest wait of one call. Default: 2 s.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// The largest step that is reached by growing, at least 1; a step in the table that is larger stays. Default:
    /// 1,000,000.
    #[must_use]
    pub fn step_cap(mut self, step_cap: u64) -> Self {
        self.step_cap = step_cap;
        self
    }

    /// The interval at which the table is read for tags that were added, changed or removed, at least 1 ms. Default: 60 s.
    #[must_use]
    pub fn refresh_every(mut self, refresh_every: Duration) -> Self {
        self.refresh_every = refresh_every;
        self
    }

    /// Another clock than the system's. A clock that does not run by itself needs
    /// [`Drive::ByHand`].
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The driver of fetches. Default: [`Drive::Thread`].
    #[must_use]
    pub fn drive(mut self, drive: Drive) -> Self {
        self.drive = drive;
        self
    }

    /// Builds the service. The store is not waited for: calls wait until it has answered, and fail if
    /// it does not. [`SegmentService::refresh`] tells whether it does.
    ///
    /// # Errors
    /// [`BuildError`] if a setting is out of its range or no thread can be started.
    pub fn build(self) -> Result<SegmentService, BuildError> {
        IdError::check("step_cap", self.step_cap, 1, u64::MAX)?;
        if self.refresh_every < Duration::from_millis(1) {
            return Err(IdError::invalid("refresh_every", "it must be 1 ms or more").into());
        }
        let core = Arc::new(Core {
            store: self.store,
            clock: self.clock.map_or(AnyClock::System(SystemClock::new()), AnyClock::Other),
            drive: self.drive,
            mode: self.mode,
            max_wait: self.max_wait,
            step_cap: self.step_cap,
            refresh_every: self.refresh_every,
            registry: Registry::new(),
            jobs: Jobs::default(),
            reading: crate::sync::Mutex::default(),
        });
        core.jobs.add(Job::Refresh);
        if !core.by_hand() {
            core.start_thread().map_err(BuildError::Thread)?;
        }
        Ok(SegmentService { core })
    }
}
