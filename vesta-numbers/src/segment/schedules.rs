//! A segment service under load: callers, its threads, a slow or failing database, other processes
//! and the end, in many random schedules.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shuttle::rand::{Rng as _, thread_rng};
use shuttle::thread::{JoinHandle, spawn, yield_now};
use vesta_intf::{IdError, UnixMillis};

use super::{NewSegmentTag, NextRange, SegmentService, SegmentStore, SegmentTag};
use crate::testing::MemorySegmentStore;
use vesta_service::inside::races::{
    Ends, ModelClock, NEVER, after_a_while, at_random, unique_and_growing,
};
use vesta_service::lease::StoreError;
use vesta_service::options::Drive;

const TAG: &str = "orders";

type Taken = Vec<Range<u64>>;

#[derive(Debug)]
struct Store {
    tags: MemorySegmentStore,
    /// Set if some requests and replies are lost.
    lossy: bool,
    /// Fault of the store: it does not record what it hands out.
    forgetful: bool,
}

fn lost() -> StoreError {
    StoreError::unavailable("lost", std::io::Error::other("on the way"))
}

impl SegmentStore for Store {
    fn describe(&self) -> String {
        "a model".into()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        yield_now();
        self.tags.tags()
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        yield_now();
        let fate = if self.lossy {
            thread_rng().gen_range(0..8)
        } else {
            9
        };
        if fate == 0 {
            return Err(lost());
        }
        if self.forgetful {
            return Ok(NextRange::Numbers(1..1 + step));
        }
        let reply = self.tags.next_range(key, step);
        yield_now();
        if fate == 1 { Err(lost()) } else { reply }
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        yield_now();
        match if self.lossy {
            thread_rng().gen_range(0..4)
        } else {
            9
        } {
            0 => Err(lost()),
            1 => self.tags.give_back(key, numbers).and_then(|_| Err(lost())),
            _ => self.tags.give_back(key, numbers),
        }
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.tags.create(tag)
    }
}

#[derive(Clone)]
struct Model {
    store: Arc<Store>,
    service: Arc<SegmentService>,
    over: Arc<AtomicBool>,
}

impl Model {
    /// With the service's own threads the clock does not move: nothing may fail, and no wait ends by itself.
    fn new(threads: bool, forgetful: bool) -> Self {
        let lossy = !threads;
        let store = Arc::new(Store {
            tags: MemorySegmentStore::new(),
            lossy,
            forgetful,
        });
        let tag = NewSegmentTag::new(TAG, 3).expect("a step of 3");
        store.create(&tag).expect("it is new");
        let service = SegmentService::builder(store.clone())
            .step_cap(6)
            .max_wait(NEVER)
            .refresh_every(NEVER);
        let service = if threads {
            service
        } else {
            service
                .clock(Arc::new(ModelClock::at(
                    UnixMillis(0),
                    Duration::from_millis(50),
                )))
                .drive(Drive::ByHand)
        };
        let service = Arc::new(service.build().expect("it can be built"));
        Self {
            store,
            service,
            over: Arc::default(),
        }
    }

    fn caller(&self, wants: &'static [u32]) -> JoinHandle<Taken> {
        let this = self.clone();
        spawn(move || {
            let mut taken = Taken::new();
            for want in wants {
                let over = this.over.load(Ordering::SeqCst);
                match this
                    .service
                    .segment(TAG)
                    .and_then(|tag| tag.next_run(*want))
                {
                    Ok(run) => {
                        assert!(!over, "issued after the end: {run:?}");
                        taken.push(run.first..run.first + u64::from(run.count));
                    }
                    Err(IdError::Sealed { .. } | IdError::NotFound { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            taken
        })
    }

    /// Another process takes numbers.
    fn other(&self) -> JoinHandle<Taken> {
        let this = self.clone();
        spawn(move || match this.store.tags.next_range(TAG, 2) {
            Ok(NextRange::Numbers(numbers)) => vec![numbers],
            _ => Taken::new(),
        })
    }

    fn over(&self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

fn joined(threads: Vec<JoinHandle<Taken>>) -> Vec<Range<u64>> {
    let taken: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect();
    unique_and_growing(&taken)
}

const WANTS: &[u32] = &[1, 2, 1];

#[test]
fn closing_races_with_callers_and_threads() {
    let ends = Ends::new();
    let note = ends.clone();
    at_random("the end", 12_500, move || {
        let model = Model::new(true, false);
        let mut threads: Vec<_> = (0..3).map(|_| model.caller(WANTS)).collect();
        threads.push(model.other());
        after_a_while(150);
        model.service.close();
        model.over();
        threads.extend([model.other(), model.other()]); // they get the numbers that were given back
        note.note(joined(threads).len());
    });
    assert!(
        ends.get().len() > 3,
        "it ended at different moments: {:?}",
        ends.get()
    );
}

#[test]
fn no_caller_waits_forever() {
    at_random("no end", 12_500, move || {
        let model = Model::new(true, false);
        let threads: Vec<_> = (0..3).map(|_| model.caller(WANTS)).collect();
        assert_eq!(joined(threads).len(), 9, "every call was answered");
        model.service.close();
    });
}

#[test]
fn a_lossy_database_loses_no_calls() {
    at_random("a lossy database", 12_500, move || {
        let model = Model::new(false, false);
        let mut threads: Vec<_> = (0..3).map(|_| model.caller(WANTS)).collect();
        threads.push(model.other());
        let mut taken = joined(threads);
        assert!(taken.len() >= 9, "every call was answered");
        model.service.close();
        taken.extend(model.other().join().expect("no panic"));
        unique_and_growing(&taken.into_iter().map(|one| vec![one]).collect::<Vec<_>>());
    });
}

#[test]
fn a_tag_is_removed_at_any_moment() {
    let ends = Ends::new();
    let note = ends.clone();
    at_random("a tag that is removed", 12_500, move || {
        let model = Model::new(true, false);
        let threads: Vec<_> = (0..2).map(|_| model.caller(WANTS)).collect();
        after_a_while(150);
        model.store.tags.remove(TAG);
        model.service.refresh().expect("the store answers");
        model.over();
        note.note(joined(threads).len());
        model.service.close();
    });
    assert!(
        ends.get().len() > 3,
        "it was removed at different moments: {:?}",
        ends.get()
    );
}

#[test]
#[should_panic(expected = "given twice")]
fn planted_store_that_counts_nothing_away() {
    at_random("planted fault", 10_000, || {
        let model = Model::new(false, true);
        let threads = vec![model.caller(&[2]), model.other()];
        joined(threads);
    });
}
