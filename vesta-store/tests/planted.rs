//! The suite itself: a store with a planted fault does not pass, and the promise that fails is the
//! one that the fault breaks.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use vesta_service::{
    Cas, Expect, LeaseStore, MemoryStore, Namespace, Record, StoreError, Timing, UnixMillis,
};
use vesta_store::conformance::{Backend, Fixture, PROMISES, check};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fault {
    None,
    IgnoresEpoch,
    IgnoresOwner,
    IgnoresBound,
    ReadsThenWrites,
    ForgetsAttempt,
    CutsOwner,
    KeepsEpoch,
    NeverLowers,
    OneNamespace,
    TakesNewFingerprint,
    ListsNothing,
    CachesReads,
    HidesConflict,
    ShowsExpected,
    AcknowledgesOnly,
    ForgetsFloor,
    ClockOff,
}

/// A store in memory with one fault.
#[derive(Debug)]
struct Broken {
    fault: Fault,
    store: Arc<MemoryStore>,
    cache: Mutex<HashMap<(String, u64), Option<Record>>>,
}

impl Broken {
    fn current(&self, namespace: &str, machine: u64) -> Result<Record, StoreError> {
        let floor = self.store.raise_floor(namespace, 0)?;
        Ok(self.store.read(namespace, machine)?.unwrap_or(Record::unclaimed(floor)))
    }

    fn namespace<'a>(&self, name: &'a str) -> &'a str {
        if self.fault == Fault::OneNamespace { "one" } else { name }
    }
}

impl LeaseStore for Broken {
    fn describe(&self) -> String {
        format!("{:?}", self.fault)
    }

    fn timing(&self) -> Timing {
        Timing::ONE_HOST
    }

    fn open_namespace(&self, name: &str, fingerprint: &str) -> Result<Namespace, StoreError> {
        let namespace = self.store.open_namespace(self.namespace(name), fingerprint)?;
        Ok(match self.fault {
            Fault::TakesNewFingerprint => {
                Namespace { fingerprint: fingerprint.into(), ..namespace }
            }
            _ => namespace,
        })
    }

    fn raise_floor(&self, name: &str, floor: u64) -> Result<u64, StoreError> {
        match self.fault {
            Fault::ForgetsFloor => Ok(floor),
            _ => self.store.raise_floor(self.namespace(name), floor),
        }
    }

    fn list(&self, name: &str) -> Result<Vec<(u64, Record)>, StoreError> {
        match self.fault {
            Fault::ListsNothing => Ok(Vec::new()),
            _ => self.store.list(self.namespace(name)),
        }
    }

    fn read(&self, name: &str, machine: u64) -> Result<Option<Record>, StoreError> {
        let fresh = || self.store.read(self.namespace(name), machine);
        if self.fault != Fault::CachesReads {
            return fresh();
        }
        let key = (name.to_owned(), machine);
        if let Some(known) = self.cache.lock().unwrap().get(&key) {
            return Ok(known.clone());
        }
        let record = fresh()?;
        self.cache.lock().unwrap().insert(key, record.clone());
        Ok(record)
    }

    fn cas(
        &self,
        name: &str,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, StoreError> {
        let name = self.namespace(name);
        let current = self.current(name, machine)?;
        let (mut expect, mut new) = (*expect, new.clone());
        match self.fault {
            Fault::IgnoresEpoch => expect.epoch = current.epoch,
            Fault::IgnoresOwner => expect.owner = current.owner,
            Fault::IgnoresBound => expect.bound = current.bound,
            Fault::ForgetsAttempt => new.attempt = 0,
            Fault::CutsOwner => new.owner &= u128::from(u64::MAX),
            Fault::KeepsEpoch => new.epoch = current.epoch.max(1),
            Fault::NeverLowers => new.bound = new.bound.max(current.bound),
            Fault::AcknowledgesOnly if current.epoch == 1 => return Ok(Cas::Done),
            Fault::ReadsThenWrites if current.meets(&expect) => {
                for _ in 0..100 {
                    std::thread::yield_now();
                }
                while !matches!(
                    self.store.cas(name, machine, &self.current(name, machine)?.expect(), &new)?,
                    Cas::Done
                ) {}
                return Ok(Cas::Done);
            }
            _ => {}
        }
        let outcome = self.store.cas(name, machine, &expect, &new)?;
        Ok(match (self.fault, outcome) {
            (Fault::HidesConflict, Cas::Conflict(_)) => Cas::Done,
            (Fault::ShowsExpected, Cas::Conflict(current)) => {
                let Expect { epoch, owner, bound } = expect;
                Cas::Conflict(Record { epoch, owner, bound, ..current })
            }
            (_, outcome) => outcome,
        })
    }

    fn now(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok((self.fault == Fault::ClockOff).then_some(UnixMillis(1_000_000_000_000)))
    }
}

struct Planted(Fault);
struct One(Fault, Arc<MemoryStore>);

impl Backend for Planted {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(One(self.0, Arc::default()))
    }
}

impl Fixture for One {
    fn connect(&self) -> Arc<dyn LeaseStore> {
        Arc::new(Broken { fault: self.0, store: self.1.clone(), cache: Mutex::default() })
    }
}

fn keeps(promise: &str, fault: Fault) -> bool {
    catch_unwind(AssertUnwindSafe(|| check(promise, &Planted(fault)))).is_ok()
}

#[test]
fn without_a_fault_every_promise_is_kept() {
    for (promise, _) in PROMISES {
        assert!(keeps(promise, Fault::None), "{promise}");
    }
}

#[test]
fn each_fault_is_found_by_the_promises_that_it_breaks() {
    const CONDITION: &str = "a_change_takes_effect_only_if_epoch_owner_and_bound_are_as_expected";
    for (fault, broken) in [
        (Fault::IgnoresEpoch, &[CONDITION][..]),
        (Fault::IgnoresOwner, &[CONDITION]),
        (Fault::IgnoresBound, &[CONDITION]),
        (Fault::ReadsThenWrites, &["of_many_changes_at_once_exactly_one_takes_effect"]),
        (
            Fault::ForgetsAttempt,
            &[
                "a_record_comes_back_as_it_was_written",
                "a_claim_whose_reply_is_lost_is_recognised_by_its_attempt",
                "an_extend_whose_reply_is_lost_opens_no_second_window",
            ],
        ),
        (Fault::CutsOwner, &["a_record_comes_back_as_it_was_written"]),
        (Fault::KeepsEpoch, &["each_claim_adds_one_to_the_epoch", CONDITION]),
        (Fault::NeverLowers, &["a_released_machine_id_goes_on_exactly_where_it_was_sealed"]),
        (Fault::OneNamespace, &["namespaces_do_not_touch_each_other"]),
        (
            Fault::TakesNewFingerprint,
            &["another_layout_is_refused", "a_namespace_keeps_its_first_fingerprint_and_uuid"],
        ),
        (Fault::ListsNothing, &["a_restart_takes_its_own_machine_id_again"]),
        (Fault::CachesReads, &["a_second_connection_sees_what_the_first_wrote"]),
        (
            Fault::HidesConflict,
            &[
                "racing_starters_never_share_a_machine_id",
                "a_delayed_extend_is_rejected_after_a_newer_claim",
                "a_fenced_owner_stops_and_goes_on_with_another_machine_id",
            ],
        ),
        (
            Fault::ShowsExpected,
            &[CONDITION, "a_claim_whose_reply_is_lost_is_recognised_by_its_attempt"],
        ),
        (
            Fault::AcknowledgesOnly,
            &["ids_go_on_while_the_bound_is_extended", "a_record_comes_back_as_it_was_written"],
        ),
        (
            Fault::ForgetsFloor,
            &[
                "a_floor_is_only_ever_raised_and_new_records_start_there",
                "a_wiped_store_is_refused_where_a_host_remembers_until_the_floor_is_raised",
            ],
        ),
        (Fault::ClockOff, &["its_durations_fit_together_and_its_clock_is_right"]),
    ] {
        for promise in broken {
            assert!(!keeps(promise, fault), "{promise} does not notice {fault:?}");
        }
    }
}

/// Faults that let IDs repeat are found by the IDs, too.
#[test]
fn a_fault_that_repeats_ids_does_not_survive_the_walk() {
    let walk = "no_id_repeats_and_no_bound_drops_whatever_happens";
    for fault in [Fault::HidesConflict, Fault::AcknowledgesOnly, Fault::KeepsEpoch] {
        assert!(!keeps(walk, fault), "{fault:?}");
    }
}
