//! Requests that are sent again after an error, and those that are not.

use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::lease::Record;
use crate::testing::{Intercept, MemoryStore, Request};

/// Requests for these changes, by key, to a store that answers no request with several changes.
fn requests(writes: &[(u64, Write)]) -> Vec<Vec<String>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let store = Intercept::new(Arc::new(MemoryStore::new()), move |request, store| {
        if let Request::Put { puts, .. } = request {
            seen.lock()
                .push(puts.iter().map(|put| put.key.clone()).collect());
            if puts.len() > 1 {
                let cause = std::io::Error::from(std::io::ErrorKind::TimedOut);
                return Err(StoreError::unavailable("no answer", cause));
            }
        }
        request.send(store)
    });
    let answers = Leases::new(Arc::new(store), "orders").write_all(writes);
    assert_eq!(answers.len(), writes.len());
    std::mem::take(&mut *asked.lock())
}

#[test]
fn creation_is_never_sent_twice_and_holds_up_what_was_sent_with_it() {
    let record = |birth| Record {
        birth,
        ..Record::default()
    };
    let creation = |machine| {
        (
            machine,
            Write::Record {
                old: None,
                new: record(machine),
            },
        )
    };
    let renewal = |machine| {
        let new = Record {
            bound: 9,
            ..record(machine)
        };
        (
            machine,
            Write::Record {
                old: Some(record(machine)),
                new,
            },
        )
    };
    assert_eq!(requests(&[creation(1), creation(2), creation(3)]).len(), 1);
    assert_eq!(requests(&[renewal(1), creation(2), renewal(3)]).len(), 1);
    let sent = requests(&[renewal(1), renewal(2)]);
    assert_eq!(
        sent,
        [vec!["1", "2"], vec!["1"], vec!["2"]],
        "renewals are tried apart"
    );
}

#[test]
fn claim_waits_for_the_history_and_a_renewal_does_not() {
    let store = Arc::new(MemoryStore::new());
    let before = Record {
        epoch: 1,
        ..Record::default()
    };
    let leases = Leases::new(store.clone(), "orders");
    for machine in [1, 2] {
        let made = leases.change(machine, None, &before).unwrap();
        assert_eq!(made, Cas::Done);
    }
    let without_history = Intercept::new(store, |request, store| match request {
        Request::Put { area, .. } if area.starts_with("history/") => {
            let cause = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(StoreError::unavailable("no answer", cause))
        }
        request => request.send(store),
    });
    let change = |new| Write::Record {
        old: Some(before.clone()),
        new,
    };
    let claim = change(Record {
        epoch: 2,
        ..before.clone()
    });
    let renewal = change(Record {
        bound: 9,
        ..before.clone()
    });
    let answers =
        Leases::new(Arc::new(without_history), "orders").write_all(&[(1, claim), (2, renewal)]);
    assert!(
        matches!(answers[..], [Answer::Failed(_), Answer::Record(Cas::Done)]),
        "{answers:?}"
    );
    assert_eq!(leases.record(1).unwrap(), Some(before));
}
