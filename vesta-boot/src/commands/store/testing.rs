//! Test support: a store in memory, a stopped clock, and a scripted prompt.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use vesta_intf::{IdMeta, UnixMillis};
use vesta_service::lease::{Cas, KvStore, Leases, Record};
use vesta_service::testing::{Answer, Intercept, ManualClock, MemoryStore, Request};
use vesta_store::import::put;

use super::opened::Opened;
use crate::console::Console;
use crate::error::Error;

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

/// The position of a moment, in seconds from now.
pub(crate) fn at(seconds: i64) -> u64 {
    let moment = NOW
        .0
        .checked_add_signed(seconds * 1000)
        .expect("after 1970");
    IdMeta::MAX_PEAK
        .position_at(UnixMillis(moment))
        .expect("inside the layout")
}

/// The record of a process with this bound.
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
        ..Record::default()
    }
}

pub(crate) struct World {
    records: Arc<MemoryStore>,
    pub(crate) store: Arc<dyn KvStore>,
}

impl World {
    /// A namespace for max-peak.
    pub(crate) fn new() -> Self {
        let records = Arc::new(MemoryStore::new());
        let world = Self {
            store: records.clone(),
            records,
        };
        world
            .leases()
            .open(&IdMeta::MAX_PEAK.fingerprint())
            .expect("memory");
        world
    }

    pub(crate) fn with_store_clock(self, now: UnixMillis) -> Self {
        let store = Intercept::new(self.records.clone(), move |request, store| match request {
            Request::Now => Ok(Answer::Now(Some(now))),
            _ => request.send(store),
        });
        Self {
            store: Arc::new(store),
            ..self
        }
    }

    pub(super) fn opened(&self) -> Opened {
        self.opened_for(IdMeta::MAX_PEAK)
    }

    pub(super) fn opened_for(&self, layout: IdMeta) -> Opened {
        let clock = Arc::new(ManualClock::at(NOW));
        Opened::new(self.leases(), layout, 5000, clock).expect("memory")
    }

    pub(crate) fn leases(&self) -> Leases {
        Leases::new(self.store.clone(), "default")
    }

    /// A record of this namespace.
    pub(crate) fn own(&self, record: Record) -> Record {
        let namespace = self
            .leases()
            .find()
            .expect("memory")
            .expect("it was opened")
            .uuid;
        Record {
            namespace,
            ..record
        }
    }

    /// Creates or replaces a record.
    pub(crate) fn put(&self, machine: u64, record: &Record) {
        let (leases, record) = (self.leases(), self.own(record.clone()));
        let seen = leases.snapshot().expect("memory");
        assert_eq!(
            put(&leases, &seen, machine, &record).expect("memory"),
            Cas::Done
        );
    }

    /// Deletes a record directly, outside the protocol.
    pub(crate) fn delete(&self, machine: u64) {
        self.records.delete("lease/default", &machine.to_string());
    }

    /// The current record, without the uuid of the namespace, which is checked.
    pub(crate) fn record(&self, machine: u64) -> Record {
        let record = self
            .leases()
            .record(machine)
            .expect("memory")
            .expect("a record");
        assert_eq!(record, self.own(record.clone()));
        Record {
            namespace: 0,
            ..record
        }
    }

    /// Output of a command whose prompt gets this answer; `None` means no terminal.
    pub(super) fn with_console(
        &self,
        answer: Option<bool>,
        command: impl FnOnce(&mut Console) -> Result<String, Error>,
    ) -> Result<String, String> {
        let no_terminal = || Error::setting("add --yes");
        self.with_asked(move || answer.ok_or_else(no_terminal), command)
    }

    pub(super) fn with_asked(
        &self,
        mut ask: impl FnMut() -> Result<bool, Error> + 'static,
        command: impl FnOnce(&mut Console) -> Result<String, Error>,
    ) -> Result<String, String> {
        let said = Rc::new(RefCell::new(String::new()));
        let heard = Rc::clone(&said);
        let say = move |text: &str| heard.borrow_mut().push_str(text);
        let mut console = Console {
            say: Box::new(say),
            ask: Box::new(move |_| ask()),
        };
        let done = command(&mut console);
        drop(console);
        done.map(|outcome| said.take() + &outcome)
            .map_err(|error| error.to_string())
    }
}
