//! Tests the suite itself: a store with a planted fault fails exactly the promises that the fault
//! breaks.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, Put, StoreError, Timing};
use vesta_service::testing::{Answer, Intercept, MemoryStore, Request};
use vesta_store::conformance::{Backend, Fixture, PROMISES, check};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    IgnoresCase,
    TrimsBlanks,
    PutsOverAnother,
    CreatesTwice,
    ReadsThenWrites,
    ListsWhatBeginsSo,
    ListsNothing,
    ReadsOneOnly,
    OneArea,
    CutsValues,
    AcknowledgesOnly,
    HidesConflicts,
    CachesReads,
    CachesFloors,
    ForgetsFloors,
    ForgetsMarks,
    ClockOff,
}

type Cache = HashMap<(String, String), Option<String>>;

/// A memory store with one fault.
fn broken(fault: Option<Fault>, store: Arc<MemoryStore>) -> Intercept {
    let has = move |one| fault == Some(one);
    let cache = Mutex::new(Cache::new());
    let broken = Intercept::new(store, move |request, store| {
        let within = |area| if has(Fault::OneArea) { "one" } else { area };
        match request {
            Request::List { area } => {
                let mut entries = store.list(within(area))?;
                if has(Fault::ListsWhatBeginsSo) {
                    entries.extend(store.list(&format!("{area}1"))?);
                }
                entries.retain(|_| !has(Fault::ListsNothing));
                Ok(Answer::Entries(entries))
            }
            Request::GetAll { area, keys } => {
                let mut entries = store.get_all(within(area), keys)?;
                if has(Fault::ReadsOneOnly) {
                    entries.truncate(1);
                }
                Ok(Answer::Entries(entries))
            }
            Request::Get { area, key } => {
                let fresh = || store.get(within(area), key);
                let caches_floor = has(Fault::CachesFloors) && key == "namespace";
                if !has(Fault::CachesReads) && !caches_floor {
                    return fresh().map(Answer::Value);
                }
                let place = (area.to_owned(), key.to_owned());
                if let Some(known) = cache.lock().unwrap().get(&place) {
                    return Ok(Answer::Value(known.clone()));
                }
                let value = fresh()?;
                if value.is_some() || !caches_floor {
                    cache.lock().unwrap().insert(place, value.clone());
                }
                Ok(Answer::Value(value))
            }
            Request::Put { area, puts } => {
                let done = puts
                    .iter()
                    .map(|put| broken_put(has, store, within(area), put));
                Ok(Answer::Done(done.collect::<Result<_, _>>()?))
            }
            Request::Now => {
                let off = UnixMillis(1_000_000_000_000);
                Ok(Answer::Now(has(Fault::ClockOff).then_some(off)))
            }
            Request::Doubt => request.send(store),
        }
    });
    broken.timing(Timing::ONE_HOST)
}

fn broken_put(
    has: impl Fn(Fault) -> bool,
    store: &dyn KvStore,
    area: &str,
    Put { key, old, new, .. }: &Put,
) -> Result<bool, StoreError> {
    let old = old.as_deref();
    let current = store.get(area, key)?;
    let alike = match (&current, old) {
        (Some(current), Some(old)) if has(Fault::IgnoresCase) => current.eq_ignore_ascii_case(old),
        (Some(current), Some(old)) if has(Fault::TrimsBlanks) => {
            current.trim_end() == old.trim_end()
        }
        (Some(_), Some(_)) => has(Fault::PutsOverAnother),
        (Some(_), None) => has(Fault::CreatesTwice),
        _ => false,
    };
    let fits = current.as_deref() == old;
    if has(Fault::ReadsThenWrites) && fits {
        (0..100).for_each(|_| std::thread::yield_now());
        while !store.put_if(area, key, store.get(area, key)?.as_deref(), new)? {}
        return Ok(true);
    }
    let forgets = has(Fault::AcknowledgesOnly) || has(Fault::ForgetsFloors) && key == "namespace";
    let forgets_mark = has(Fault::ForgetsMarks) && key.starts_with("births-");
    if (forgets && old.is_some() || forgets_mark) && fits {
        return Ok(true);
    }
    let old = if alike { current.as_deref() } else { old };
    let cut = new.chars().take(8000).collect::<String>();
    let new = if has(Fault::CutsValues) { &cut } else { new };
    Ok(store.put_if(area, key, old, new)? || has(Fault::HidesConflicts))
}

struct Planted(Option<Fault>);
struct One(Option<Fault>, Arc<MemoryStore>);

impl Backend for Planted {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(One(self.0, Arc::default()))
    }
}

impl Fixture for One {
    fn connect(&self) -> Arc<dyn KvStore> {
        Arc::new(broken(self.0, self.1.clone()))
    }
}

fn keeps(promise: &str, fault: Option<Fault>) -> bool {
    catch_unwind(AssertUnwindSafe(|| check(promise, &Planted(fault)))).is_ok()
}

#[test]
fn without_a_fault_every_promise_is_kept() {
    for (promise, _) in PROMISES {
        assert!(keeps(promise, None), "{promise}");
    }
}

#[test]
fn each_fault_is_found_by_the_promises_that_it_breaks() {
    for (fault, broken) in [
        (Fault::IgnoresCase, &["values_are_compared_as_bytes"][..]),
        (Fault::TrimsBlanks, &["values_are_compared_as_bytes"]),
        (
            Fault::PutsOverAnother,
            &["a_put_over_another_value_changes_nothing"],
        ),
        (
            Fault::CreatesTwice,
            &["a_put_over_another_value_changes_nothing"],
        ),
        (
            Fault::ReadsThenWrites,
            &[
                "of_concurrent_puts_exactly_one_takes_effect",
                "of_concurrent_changes_exactly_one_takes_effect",
            ],
        ),
        (Fault::ListsWhatBeginsSo, &["areas_do_not_touch_each_other"]),
        (Fault::ListsNothing, &["areas_do_not_touch_each_other"]),
        (Fault::ReadsOneOnly, &["entries_are_read_by_their_keys"]),
        (
            Fault::OneArea,
            &[
                "areas_do_not_touch_each_other",
                "entries_are_read_by_their_keys",
                "namespaces_do_not_touch_each_other",
            ],
        ),
        (Fault::CutsValues, &["values_of_16_kib_come_back"]),
        (
            Fault::AcknowledgesOnly,
            &[
                "an_acknowledged_put_outlives_a_restart",
                "ids_keep_flowing_while_the_bound_is_extended",
                "a_record_comes_back_as_it_was_written",
                "a_creator_that_dies_between_any_two_steps_blocks_no_claim",
            ],
        ),
        (
            Fault::HidesConflicts,
            &[
                "a_put_over_another_value_changes_nothing",
                "a_thousand_first_starters_at_once_get_a_thousand_machine_ids_within_30_s",
                "racing_starters_never_share_a_machine_id",
                "a_fenced_owner_stops_and_claims_another_machine_id",
            ],
        ),
        (
            Fault::CachesReads,
            &["a_second_connection_sees_what_the_first_wrote"],
        ),
        (
            Fault::CachesFloors,
            &["a_floor_raised_between_any_two_steps_of_a_claim_counts"],
        ),
        (
            Fault::ForgetsFloors,
            &[
                "a_floor_is_only_ever_raised_and_new_records_start_there",
                "a_floor_raised_between_any_two_steps_of_a_claim_counts",
            ],
        ),
        (
            Fault::ForgetsMarks,
            &[
                "a_deleted_record_of_a_living_owner_is_not_claimed_again",
                "a_deleted_record_of_a_dead_owner_is_not_claimed_again",
            ],
        ),
        (
            Fault::ClockOff,
            &["the_durations_are_consistent_and_the_clock_is_right"],
        ),
    ] {
        for promise in broken {
            assert!(
                !keeps(promise, Some(fault)),
                "{promise} does not notice {fault:?}"
            );
        }
    }
}

/// Faults that let IDs repeat are detected by the IDs, too.
#[test]
fn a_fault_that_repeats_ids_is_detected_by_the_walk() {
    let walk = "no_id_repeats_and_no_bound_drops_whatever_happens";
    for fault in [
        Fault::HidesConflicts,
        Fault::AcknowledgesOnly,
        Fault::PutsOverAnother,
    ] {
        assert!(!keeps(walk, Some(fault)), "{fault:?}");
    }
}
