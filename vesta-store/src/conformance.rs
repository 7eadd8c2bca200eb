//! Conformance suite: the promises of every store, run against each backend unchanged.
//!
//! A backend's test file only defines how to create a fresh store:
//! ```no_run
//! use std::sync::Arc;
//! use vesta_service::lease::KvStore;
//! use vesta_service::testing::MemoryStore;
//! use vesta_store::conformance::{Backend, Fixture};
//!
//! struct Memory;
//! struct One(Arc<MemoryStore>);
//!
//! impl Backend for Memory {
//!     fn fresh(&self) -> Box<dyn Fixture> {
//!         Box::new(One(Arc::new(MemoryStore::new())))
//!     }
//! }
//!
//! impl Fixture for One {
//!     fn connect(&self) -> Arc<dyn KvStore> {
//!         self.0.clone()
//!     }
//! }
//!
//! vesta_store::conformance!(Memory);
//! # fn main() {}
//! ```
//! The macro generates one test per promise. Where possible, the suite uses
//! [`LocalIdService`](vesta_service::LocalIdService) on a [`ManualClock`](vesta_service::testing::ManualClock),
//! so no test waits. The rules below it are checked on the store itself.

mod claims;
mod clocks;
mod deleted;
mod faults;
mod first_starts;
mod kv;
mod lifecycle;
mod marks;
mod proxy;
mod random_walk;
mod records;
mod rules;
mod world;

use std::sync::Arc;

use vesta_service::lease::KvStore;

pub use proxy::Proxy;
pub use records::{Cas, Expect, RecordExt, Records};

/// A kind of store.
pub trait Backend: Send + Sync {
    /// Creates a store without any namespace.
    fn fresh(&self) -> Box<dyn Fixture>;
}

/// One store; dropping it may remove it.
pub trait Fixture: Send + Sync {
    /// A new connection to the store.
    fn connect(&self) -> Arc<dyn KvStore>;

    /// Restarts the store, if it is a process. Does nothing by default: a new connection must
    /// suffice.
    fn restart(&self) {}

    /// Deletes an entry by the store's own means, like an operator. `false` if that is impossible: the
    /// suite then hides the entry instead.
    fn delete(&self, _area: &str, _key: &str) -> bool {
        false
    }
}

/// A name whose area has the most characters that an area may have.
const LONG_NAME: &str = match std::str::from_utf8(&[b'a'; 394]) {
    Ok(name) => name,
    Err(_) => unreachable!(),
};

/// Names of the namespaces that the suite uses, beside `round-0` to `round-99`.
pub const NAMESPACES: [&str; 10] = [
    world::NAMESPACE,
    "other",
    "raced",
    "a",
    "A",
    "a.b",
    "a-",
    "ab",
    LONG_NAME,
    // One character shorter.
    LONG_NAME.split_at(393).0,
];

/// A named promise: panics if the backend does not keep it.
pub type Promise = fn(&dyn Backend);

macro_rules! promises {
    ($d:tt $($module:ident: $($name:ident)*;)*) => {
        /// Every promise with its name.
        pub const PROMISES: &[(&str, Promise)] =
            &[$($((stringify!($name), $module::$name),)*)*];

        /// Generates a test for each promise of the [suite](mod@crate::conformance), for one
        /// [`Backend`](crate::conformance::Backend).
        #[macro_export]
        macro_rules! conformance {
            ($d backend:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        ::vesta_store::conformance::check(stringify!($name), &$d backend);
                    }
                )*)*
            };
        }
    };
}

promises! { $
    kv:
        values_are_compared_as_bytes
        a_put_over_another_value_changes_nothing
        of_concurrent_puts_exactly_one_takes_effect
        batched_puts_take_effect_one_by_one
        entries_are_read_by_their_keys
        areas_do_not_touch_each_other
        values_of_16_kib_come_back
        an_acknowledged_put_outlives_a_restart;
    rules:
        a_record_comes_back_as_it_was_written
        an_absent_record_counts_as_unclaimed
        a_change_takes_effect_only_if_epoch_owner_and_bound_are_as_expected
        of_concurrent_changes_exactly_one_takes_effect
        a_delayed_extend_is_rejected_after_a_newer_claim
        a_second_connection_sees_what_the_first_wrote
        acknowledged_writes_outlive_a_restart
        namespaces_do_not_touch_each_other
        a_namespace_keeps_its_first_fingerprint_and_uuid
        a_namespace_that_was_not_opened_is_refused
        a_floor_is_only_ever_raised_and_new_records_start_there
        the_durations_are_consistent_and_the_clock_is_right;
    claims:
        every_claim_takes_another_machine_id
        a_used_up_pool_names_the_holders
        racing_starters_never_share_a_machine_id
        each_claim_adds_one_to_the_epoch
        another_layout_is_refused
        a_restart_takes_its_own_machine_id_again
        a_reserved_machine_id_is_taken_over_only_after_its_window
        the_lowest_free_machine_id_is_taken_if_configured
        one_process_holds_several_machine_ids
        a_foreign_machine_id_is_never_handed_out
        a_start_with_a_wrong_clock_is_refused_where_the_store_has_a_clock;
    marks:
        a_creator_that_dies_between_any_two_steps_blocks_no_claim
        a_deleted_record_of_a_living_owner_is_not_claimed_again
        a_deleted_record_of_a_dead_owner_is_not_claimed_again
        a_floor_raised_between_any_two_steps_of_a_claim_counts;
    first_starts:
        a_thousand_first_starters_at_once_get_a_thousand_machine_ids_within_30_s;
    lifecycle:
        ids_keep_flowing_while_the_bound_is_extended
        a_released_machine_id_continues_exactly_where_it_was_sealed
        an_expired_owner_keeps_its_machine_id_while_there_are_others
        a_record_that_changes_while_watched_is_not_taken_over
        a_fenced_owner_stops_and_claims_another_machine_id
        a_delayed_extend_of_a_fenced_owner_changes_nothing;
    faults:
        a_claim_whose_reply_is_lost_is_recognised_by_its_attempt
        an_extend_whose_reply_is_lost_opens_no_second_window
        a_release_whose_reply_is_lost_is_recognised
        a_store_unreachable_at_start_is_retried_then_the_start_fails
        a_store_reachable_again_in_time_is_used
        ids_stop_at_the_bound_while_the_store_is_unreachable_and_resume
        a_stop_without_the_store_leaves_the_bound_unchanged
        a_wiped_store_is_refused_where_a_host_remembers_until_the_floor_is_raised;
    random_walk:
        no_id_repeats_and_no_bound_drops_whatever_happens;
}

/// Checks one promise by its name.
///
/// # Panics
/// If the backend does not keep it, or the name is unknown.
pub fn check(name: &str, backend: &dyn Backend) {
    let promise = PROMISES.iter().find(|(known, _)| *known == name);
    let (_, promise) = promise.expect("a name from PROMISES");
    promise(backend);
}
