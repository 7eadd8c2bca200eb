//! What is sent again after an error, and what is not.

use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::lease::{KvStore, Record, Timing};
use crate::testing::MemoryStore;

/// A store that answers no request for several changes, and takes note of the keys.
#[derive(Debug, Default)]
struct Silent {
    memory: MemoryStore,
    asked: Mutex<Vec<Vec<String>>>,
}

impl KvStore for Silent {
    fn describe(&self) -> String {
        "silent".into()
    }
    fn timing(&self) -> Timing {
        Timing::ONE_HOST
    }
    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.memory.list(area)
    }
    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.memory.get(area, key)
    }
    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.memory.put_if(area, key, old, new)
    }
    fn put_all(&self, area: &str, puts: &[Put]) -> Result<Vec<bool>, StoreError> {
        self.asked.lock().push(puts.iter().map(|put| put.key.clone()).collect());
        match puts {
            [_] => self.memory.put_all(area, puts),
            _ => Err(StoreError::unavailable(
                "no answer",
                std::io::Error::from(std::io::ErrorKind::TimedOut),
            )),
        }
    }
}

/// The requests for these changes, by their keys.
fn requests(writes: &[(u64, Write)]) -> Vec<Vec<String>> {
    let store = Arc::new(Silent::default());
    let answers = Leases::new(store.clone(), "orders").write_all(writes);
    assert_eq!(answers.len(), writes.len());
    std::mem::take(&mut *store.asked.lock())
}

#[test]
fn creation_is_never_sent_twice_and_holds_up_what_was_sent_with_it() {
    let record = |birth| Record { birth, ..Record::default() };
    let creation = |machine| (machine, Write::Record { old: None, new: record(machine) });
    let renewal = |machine| {
        let new = Record { bound: 9, ..record(machine) };
        (machine, Write::Record { old: Some(record(machine)), new })
    };
    assert_eq!(requests(&[creation(1), creation(2), creation(3)]).len(), 1);
    assert_eq!(requests(&[renewal(1), creation(2), renewal(3)]).len(), 1);
    let sent = requests(&[renewal(1), renewal(2)]);
    assert_eq!(sent, [vec!["1", "2"], vec!["1"], vec!["2"]], "renewals are tried apart");
}
