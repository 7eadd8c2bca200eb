//! Records as texts and as values, and the rules for their changes.

use std::collections::HashMap;
use std::sync::Arc;

use vesta_service::lease::{KvStore as _, Leases, Record};
use vesta_service::testing::MemoryStore;

/// Records as parsed by the product, each text once.
#[derive(Debug)]
pub(super) struct Decoded {
    known: HashMap<String, Record>,
    store: Arc<MemoryStore>,
    leases: Leases,
}

impl Default for Decoded {
    fn default() -> Self {
        let store = Arc::new(MemoryStore::new());
        Self {
            known: HashMap::new(),
            leases: Leases::new(store.clone(), "x"),
            store,
        }
    }
}

impl Decoded {
    pub(super) fn record(&mut self, text: &str) -> Record {
        if let Some(record) = self.known.get(text) {
            return record.clone();
        }
        self.store
            .put_if("lease/x", "0", None, text)
            .expect("memory");
        let record = self
            .leases
            .record(0)
            .expect("a record")
            .expect("it is there");
        self.store.delete("lease/x", "0");
        self.known.insert(text.into(), record.clone());
        record
    }
}

/// A record as the product writes it.
pub(super) fn text_of(record: &Record) -> String {
    let store = Arc::new(MemoryStore::new());
    Leases::new(store.clone(), "x")
        .change(0, None, record)
        .expect("memory");
    store
        .get("lease/x", "0")
        .expect("memory")
        .expect("it is there")
}

/// The rule that a change of a record violates, if any.
pub(super) fn flaw(old: Option<&Record>, new: &Record) -> Option<String> {
    let Some(old) = old else {
        let created = new.epoch == 0 && new.owner == 0 && new.bound == 0;
        return (!created).then(|| format!("{new:?} was created"));
    };
    let same = (new.namespace, new.birth) == (old.namespace, old.birth);
    let claimed = new.epoch == old.epoch + 1 && new.owner != 0;
    let extended = new.epoch == old.epoch && new.owner == old.owner && new.bound > old.bound;
    let released = new.epoch == old.epoch && new.owner == 0 && new.released;
    let fits = claimed && new.bound >= old.bound || extended || released && new.bound <= old.bound;
    (!fits || !same).then(|| format!("{old:?} became {new:?}"))
}
