//! A host with a scripted clock, and a store with a connection that fails on command.

use std::sync::Arc;

use tempfile::TempDir;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Cas, Record, Timing};
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, ManualClock, MemoryStore};
use vesta_service::{BuildError, Builder, IdMeta, LocalIdService, MachineSource};

use super::{START, leases};

pub struct Setting {
    pub memory: Arc<MemoryStore>,
    /// The connection to that store.
    pub store: Arc<FlakyStore>,
    pub clock: ManualClock,
    pub folder: TempDir,
}

impl Setting {
    pub fn new() -> Self {
        let memory = Arc::new(MemoryStore::new());
        Self {
            store: FlakyStore::new(memory.clone()),
            memory,
            clock: ManualClock::at(START),
            folder: vesta_testkit::fast_folder(),
        }
    }

    /// Another host that uses the same store and has no local record.
    pub fn elsewhere(&self) -> Self {
        let (memory, store) = (self.memory.clone(), self.store.clone());
        Self {
            memory,
            store,
            clock: self.clock.clone(),
            folder: Self::new().folder,
        }
    }

    /// A pool of the machine IDs 3 and 4.
    pub fn builder(&self) -> Builder {
        LocalIdService::builder()
            .machine(MachineSource::Pool {
                store: self.store.clone(),
                range: Some(3..=4),
            })
            .state_dir(self.folder.path())
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
    }

    pub fn try_start(&self) -> Result<LocalIdService, BuildError> {
        self.builder().build()
    }

    pub fn start(&self) -> LocalIdService {
        self.try_start().expect("a machine ID is free")
    }

    /// Starts with the durations of Redis.
    pub fn start_from_memory(&self) -> LocalIdService {
        self.builder()
            .timing(Timing::IN_MEMORY)
            .build()
            .expect("a machine ID is free")
    }

    /// A builder with machine ID 7, reserved.
    pub fn reserved(&self) -> Builder {
        self.builder().machine(MachineSource::Reserved {
            store: self.store.clone(),
            id: 7,
        })
    }

    /// A stranger takes a machine ID over, with this record.
    pub fn steal(&self, machine: u64) -> Record {
        let record = self.record(machine);
        let epoch = record.epoch + 1;
        let thief = Record {
            epoch,
            owner: 99,
            attempt: 1,
            from: record.bound,
            ..record.clone()
        };
        let taken = leases(&self.memory).change(machine, Some(&record), &thief);
        assert_eq!(taken.expect("memory"), Cas::Done);
        thief
    }

    pub fn record(&self, machine: u64) -> Record {
        leases(&self.memory)
            .record(machine)
            .expect("memory")
            .expect("it was created")
    }
}

/// The first position of a moment, in the default layout of services.
pub fn position(moment: UnixMillis) -> u64 {
    IdMeta::MAX_PEAK.tick_at(moment).expect("inside the layout") << 20
}
