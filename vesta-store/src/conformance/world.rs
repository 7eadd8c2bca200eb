//! Test environment of a promise: a store, a manual clock, and hosts with their state directorys.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use vesta_service::clock::Clock as _;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, Leases, Record, Timing};
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, ManualClock};
use vesta_service::{Builder, IdMeta, LocalIdService, MachineSource};

use super::deleted::Deleted;
use super::{Backend, Fixture, Records};

pub(super) const NAMESPACE: &str = "suite";
pub(super) const LAYOUT: IdMeta = IdMeta::MAX_PEAK;
/// The same for all stores, so that each promise means the same everywhere.
pub(super) const TIMING: Timing = Timing::ONE_HOST;
/// In 2023; the layout counts whole seconds.
const START: UnixMillis = UnixMillis(1_700_000_000_000);

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) struct World {
    fixture: Box<dyn Fixture>,
    pub(super) clock: ManualClock,
    folders: TempDir,
    deleted: Deleted,
}

impl World {
    pub(super) fn new(backend: &dyn Backend) -> Self {
        let folders = tempfile::tempdir().expect("a folder for temporary files");
        let (clock, deleted) = (ManualClock::at(START), Deleted::default());
        Self {
            fixture: backend.fresh(),
            clock,
            folders,
            deleted,
        }
    }

    /// The store forgets everything, at its place; the hosts and the time stay.
    pub(super) fn wipe(&self) {
        for area in [format!("lease/{NAMESPACE}"), format!("history/{NAMESPACE}")] {
            for (key, _) in self.plain().list(&area).expect("the store answers") {
                self.delete_entry(&area, &key);
            }
        }
    }

    /// A separate connection.
    pub(super) fn connect(&self) -> Arc<FlakyStore> {
        FlakyStore::new(self.plain())
    }

    /// A connection without faults.
    pub(super) fn plain(&self) -> Arc<dyn KvStore> {
        Arc::new(self.deleted.without(self.fixture.connect()))
    }

    /// Deletes a record outside the protocol, like an operator who deletes a row.
    pub(super) fn delete(&self, machine: u64) {
        self.delete_entry(&format!("lease/{NAMESPACE}"), &machine.to_string());
    }

    fn delete_entry(&self, area: &str, key: &str) {
        if !self.fixture.delete(area, key) {
            self.deleted.delete(&*self.fixture.connect(), area, key);
        }
    }

    /// The machine IDs of the namespace, with their marks.
    pub(super) fn leases(&self) -> Leases {
        self.raw(); // opens it
        Leases::new(self.plain(), NAMESPACE)
    }

    /// A connection for reading and changing records.
    pub(super) fn raw(&self) -> Records {
        let store = Records(self.plain());
        store
            .open_namespace(NAMESPACE, &LAYOUT.fingerprint())
            .expect("the store answers");
        store
    }

    /// The record of a claimed machine ID.
    pub(super) fn record(&self, machine: u64) -> Record {
        let found = self
            .raw()
            .read(NAMESPACE, machine)
            .expect("the store answers");
        found.unwrap_or_else(|| panic!("no record of machine ID {machine}"))
    }

    pub(super) fn folder(&self, host: &str) -> PathBuf {
        self.folders.path().join(host)
    }

    /// A service of a host, over its own connection.
    pub(super) fn pool(&self, host: &str, range: RangeInclusive<u64>) -> Builder {
        self.pool_over(self.connect(), host, range)
    }

    /// A service of a host, over this connection.
    pub(super) fn pool_over(
        &self,
        store: Arc<FlakyStore>,
        host: &str,
        range: RangeInclusive<u64>,
    ) -> Builder {
        self.service(host).machine(MachineSource::Pool {
            store,
            range: Some(range),
        })
    }

    pub(super) fn service(&self, host: &str) -> Builder {
        LocalIdService::builder()
            .layout(LAYOUT)
            .timing(TIMING)
            .namespace(NAMESPACE)
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
            .state_dir(self.folder(host))
    }

    /// The position of the clock, which is that of the first ID of an idle machine ID.
    pub(super) fn position(&self) -> u64 {
        position_at(self.clock.wall())
    }

    /// The bound of a window that begins now.
    pub(super) fn window_end(&self) -> u64 {
        position_at(UnixMillis(self.clock.wall().0 + 5000))
    }
}

pub(super) fn position_at(moment: UnixMillis) -> u64 {
    LAYOUT.tick_at(moment).expect("inside the layout") << LAYOUT.spec().seq_bits
}

/// Drops a service without a release: its requests no longer reach the store.
pub(super) fn crash(service: LocalIdService, connection: &FlakyStore) {
    connection.go_away();
    drop(service);
}

/// The position of the next ID.
pub(super) fn next_position(service: &LocalIdService) -> u64 {
    position_of(service.gen_id().expect("an ID"))
}

pub(super) fn position_of(id: u64) -> u64 {
    let id = LAYOUT.unpack(id).expect("an ID of the layout");
    id.time << LAYOUT.spec().seq_bits | id.seq
}

/// A takeover of a record without regard to its owner.
pub(super) fn stolen(record: &Record) -> Record {
    Record {
        epoch: record.epoch + 1,
        owner: 0xBAD,
        from: record.bound,
        bound: record.bound + (60 << LAYOUT.spec().seq_bits),
        attempt: 0xBAD,
        released: false,
        host: "thief".into(),
        ..record.clone()
    }
}

impl World {
    pub(super) fn restart(&self) {
        self.fixture.restart();
    }
}
