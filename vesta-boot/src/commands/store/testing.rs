//! Test support: a store in memory, a stopped clock, and a scripted prompt.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use vesta_intf::{IdMeta, UnixMillis};
use vesta_service::{
    Cas, Expect, LeaseStore, ManualClock, MemoryStore, Namespace, Record, StoreError, Timing,
};

use super::{Console, Opened};
use crate::StartError;
use crate::ticks::TickConverter;

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

/// The position of a moment, in seconds from now.
pub(crate) fn at(seconds: i64) -> u64 {
    let moment = NOW.0.checked_add_signed(seconds * 1000).expect("after 1970");
    TickConverter::new(IdMeta::MAX_PEAK).position_at(UnixMillis(moment)).expect("inside the layout")
}

/// The record of a process up to this bound.
pub(crate) fn held(bound: u64) -> Record {
    Record {
        epoch: 3,
        owner: 5,
        bound,
        attempt: 1,
        released: false,
        host: "web-1".into(),
        pid: 4711,
        info_time: UnixMillis(NOW.0 - 6000),
    }
}

/// A store in memory that may have a clock.
#[derive(Debug, Default)]
pub(crate) struct Store(pub(super) MemoryStore, Mutex<Option<UnixMillis>>);

impl LeaseStore for Store {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn timing(&self) -> Timing {
        self.0.timing()
    }

    fn open_namespace(&self, namespace: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        self.0.open_namespace(namespace, fingerprint)
    }

    fn list(&self, namespace: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        self.0.list(namespace)
    }

    fn read(&self, namespace: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        self.0.read(namespace, machine)
    }

    fn cas(
        &self,
        ns: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        self.0.cas(ns, machine, expect, new)
    }

    fn raise_floor(&self, namespace: &str, floor: u64) -> Result<u64, StoreError> {
        self.0.raise_floor(namespace, floor)
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(*self.1.lock().expect("nobody panics"))
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<Store>,
}

impl World {
    /// A namespace for max-peak.
    pub(crate) fn new() -> Self {
        let world = Self { store: Arc::default() };
        let fingerprint = IdMeta::MAX_PEAK.fingerprint();
        world.store.open_namespace("default", &fingerprint).expect("memory");
        world
    }

    pub(crate) fn with_store_clock(self, now: UnixMillis) -> Self {
        *self.store.1.lock().expect("nobody panics") = Some(now);
        self
    }

    pub(super) fn opened(&self) -> Opened {
        self.opened_for(IdMeta::MAX_PEAK)
    }

    pub(super) fn opened_for(&self, layout: IdMeta) -> Opened {
        let store: Arc<dyn LeaseStore> = self.store.clone();
        let clock = Arc::new(ManualClock::at(NOW));
        Opened::new(store, "default", TickConverter::new(layout), 5000, clock).expect("memory")
    }

    pub(crate) fn put(&self, machine: u64, record: &Record) {
        let absent = Record::unclaimed(0).expect();
        let done = self.store.cas("default", machine, &absent, record).expect("memory");
        assert_eq!(done, Cas::Done);
    }

    pub(crate) fn record(&self, machine: u64) -> Record {
        self.store.read("default", machine).expect("memory").expect("a record")
    }

    /// Output of a command whose prompt gets this answer; `None` is no terminal.
    pub(crate) fn with_console(
        &self,
        answer: Option<bool>,
        command: impl FnOnce(&mut Console) -> Result<(), StartError>,
    ) -> Result<String, String> {
        let nobody = || StartError::Setting("add --yes".into());
        self.with_asked(move || answer.ok_or_else(nobody), command)
    }

    pub(crate) fn with_asked(
        &self,
        mut ask: impl FnMut() -> Result<bool, StartError> + 'static,
        command: impl FnOnce(&mut Console) -> Result<(), StartError>,
    ) -> Result<String, String> {
        let said = Rc::new(RefCell::new(String::new()));
        let heard = Rc::clone(&said);
        let mut console =
            Console::new(move |text| heard.borrow_mut().push_str(text), move |_| ask());
        let done = command(&mut console);
        drop(console);
        done.map(|()| said.take()).map_err(|error| error.to_string())
    }
}
