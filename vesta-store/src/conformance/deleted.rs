//! Entries deleted outside the protocol: no request of a [`KvStore`] deletes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vesta_service::lease::{KvStore, Put, Timing};
use vesta_service::testing::{Answer, Intercept, Request};

type Entries = BTreeMap<(String, String), String>;

/// Deleted entries by area and key, shared by all connections to a store. An entry counts as deleted while it
/// has the value that it had then: no two requests put the same value.
#[derive(Debug, Clone, Default)]
pub(super) struct Deleted(Arc<Mutex<Entries>>);

impl Deleted {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn value(&self, area: &str, key: &str) -> Option<String> {
        self.entries()
            .get(&(area.to_owned(), key.to_owned()))
            .cloned()
    }

    /// Deletes an entry of a store.
    pub(super) fn delete(&self, store: &dyn KvStore, area: &str, key: &str) {
        let value = store
            .get(area, key)
            .expect("the store answers")
            .expect("an entry");
        self.entries().insert((area.into(), key.into()), value);
    }

    /// A view of a store without the deleted entries. Its usual window is a minute, as many of these
    /// tests need.
    pub(super) fn without(&self, store: Arc<dyn KvStore>) -> Intercept {
        let Timing {
            window,
            takeover_grace,
            ..
        } = Timing::NETWORK;
        let timing = Timing {
            window,
            takeover_grace,
            ..store.timing()
        };
        let deleted = self.clone();
        let without = Intercept::new(store, move |request, store| {
            let gone = |area: &str, key: &str, value: &String| {
                deleted.value(area, key).as_ref() == Some(value)
            };
            if let Request::Put { area, puts } = request {
                // A put over a deleted value behaves as if the entry were absent.
                let seen = |put: &Put| match (&put.old, deleted.value(area, &put.key)) {
                    (Some(old), Some(deleted)) if *old == deleted => None,
                    (None, deleted @ Some(_)) => Some(Put {
                        old: deleted,
                        ..put.clone()
                    }),
                    _ => Some(put.clone()),
                };
                let puts: Vec<_> = puts.iter().map(seen).collect();
                let asked: Vec<_> = puts.iter().flatten().cloned().collect();
                let mut done = store.put_all(area, &asked)?.into_iter();
                let done = puts
                    .iter()
                    .map(|put| put.is_some() && done.next() == Some(true));
                return Ok(Answer::Done(done.collect()));
            }
            let mut answer = request.send(store)?;
            match (&mut answer, request) {
                (
                    Answer::Entries(entries),
                    Request::List { area } | Request::GetAll { area, .. },
                ) => {
                    entries.retain(|(key, value)| !gone(area, key, value));
                }
                (Answer::Value(value), Request::Get { area, key }) => {
                    value.take_if(|value| gone(area, key, value));
                }
                _ => {}
            }
            Ok(answer)
        });
        without.timing(timing)
    }
}
