//! Test environment: a store, a dedicated namespace in it, and hosts.

use std::time::Duration;

use tempfile::TempDir;
use vesta_service::lease::Timing;

use vesta_testkit::fleet::random;

use crate::stores::Store;
use crate::worker::Task;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// As short as a noisy machine allows, so that effects of a window show soon.
pub(crate) const HASTY: Timing = Timing {
    window: millis(1500),
    renew_every: millis(500),
    request_timeout: millis(400),
    takeover_grace: millis(4500),
};

/// Its window is longer than any outage here.
pub(crate) const PATIENT: Timing = Timing {
    window: millis(40_000),
    renew_every: millis(1000),
    request_timeout: millis(400),
    takeover_grace: millis(120_000),
};

pub(crate) struct World {
    folder: TempDir,
    pub(crate) name: &'static str,
    url: String,
}

impl World {
    pub(crate) fn of(store: &Store) -> Self {
        let mut world = Self::at(store, "");
        world.url = store.url(world.folder.path());
        world
    }

    /// The same, with this server.
    pub(crate) fn at(store: &Store, url: &str) -> Self {
        Self {
            folder: vesta_testkit::folder(),
            name: store.name,
            url: url.into(),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A unique namespace.
    pub(crate) fn namespace(&self) -> String {
        format!("processes-{:x}", random(u64::MAX))
    }

    /// Task of a process on this host.
    pub(crate) fn task(&self, namespace: &str, host: &str) -> Task {
        Task {
            url: self.url.clone(),
            namespace: namespace.into(),
            state_dir: self.folder.path().join(host),
            range: None,
            timing: Some(HASTY),
            waits: false,
            patient: false,
            greedy: false,
            traces: false,
        }
    }
}
