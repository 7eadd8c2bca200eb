//! The promises of every store, as one suite that is run against each of them unchanged.
//!
//! A backend's own test file says how a fresh store is made, and no more:
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
//! The macro makes a test of each promise. Where it can, the suite goes through
//! [`LocalIdService`](vesta_service::LocalIdService), on a [`ManualClock`](vesta_service::testing::ManualClock):
//! nothing waits. The rules below that are checked on the store itself.

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
    /// A store without any namespace.
    fn fresh(&self) -> Box<dyn Fixture>;
}

/// One store; dropping it may remove it.
pub trait Fixture: Send + Sync {
    /// A new connection to the store.
    fn connect(&self) -> Arc<dyn KvStore>;

    /// Stops the store and starts it again, where it is something that runs. By default nothing:
    /// then connecting anew has to do.
    fn restart(&self) {}

    /// Deletes an entry with the store's own means, as a person would. `false` if there is no way: then
    /// the suite only makes it look so.
    fn delete(&self, _area: &str, _key: &str) -> bool {
        false
    }
}

/// A promise, by its name: panics if the backend does not keep it.
pub type Promise = fn(&dyn Backend);

macro_rules! promises {
    ($d:tt $($module:ident: $($name:ident)*;)*) => {
        /// Every promise with its name.
        pub const PROMISES: &[(&str, Promise)] =
            &[$($((stringify!($name), $module::$name),)*)*];

        /// Makes a test of each promise of the [suite](mod@crate::conformance), for one
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
        of_many_puts_at_once_exactly_one_takes_effect
        puts_that_are_sent_together_take_effect_one_by_one
        areas_do_not_touch_each_other
        values_of_16_kib_come_back
        an_acknowledged_put_outlives_a_restart;
    rules:
        a_record_comes_back_as_it_was_written
        an_absent_record_counts_as_unclaimed
        a_change_takes_effect_only_if_epoch_owner_and_bound_are_as_expected
        of_many_changes_at_once_exactly_one_takes_effect
        a_delayed_extend_is_rejected_after_a_newer_claim
        a_second_connection_sees_what_the_first_wrote
        what_was_acknowledged_outlives_a_restart
        namespaces_do_not_touch_each_other
        a_namespace_keeps_its_first_fingerprint_and_uuid
        a_namespace_that_was_not_opened_is_refused
        a_floor_is_only_ever_raised_and_new_records_start_there
        its_durations_fit_together_and_its_clock_is_right;
    claims:
        every_claim_takes_another_machine_id
        a_used_up_pool_names_the_holders
        racing_starters_never_share_a_machine_id
        each_claim_adds_one_to_the_epoch
        another_layout_is_refused
        a_restart_takes_its_own_machine_id_again
        a_reserved_machine_id_is_taken_over_only_after_its_window
        the_lowest_free_number_is_taken_where_that_is_wanted
        one_process_holds_several_machine_ids
        what_another_system_uses_is_left_to_it;
    marks:
        a_creator_that_dies_between_any_two_steps_keeps_nobody_out
        a_deleted_record_of_a_living_owner_is_not_claimed_again
        a_deleted_record_of_a_dead_owner_is_not_claimed_again
        a_floor_raised_between_any_two_steps_of_a_claim_counts;
    first_starts:
        a_thousand_first_starters_at_once_get_a_thousand_machine_ids_within_30_s;
    lifecycle:
        ids_go_on_while_the_bound_is_extended
        a_released_machine_id_goes_on_exactly_where_it_was_sealed
        an_expired_owner_keeps_its_machine_id_while_there_are_others
        a_record_that_changes_while_watched_is_not_taken_over
        a_fenced_owner_stops_and_goes_on_with_another_machine_id
        a_delayed_extend_of_a_fenced_owner_changes_nothing;
    faults:
        a_claim_whose_reply_is_lost_is_recognised_by_its_attempt
        an_extend_whose_reply_is_lost_opens_no_second_window
        a_release_whose_reply_is_lost_is_recognised
        a_store_away_at_start_is_asked_again_and_then_given_up
        a_store_back_in_time_is_used
        ids_end_at_the_bound_while_the_store_is_away_and_come_back
        a_stop_with_the_store_away_leaves_the_bound_where_it_is
        a_wiped_store_is_refused_where_a_host_remembers_until_the_floor_is_raised;
    random_walk:
        no_id_repeats_and_no_bound_drops_whatever_happens;
}

/// Checks one promise by its name.
///
/// # Panics
/// If the backend does not keep it, or there is no such promise.
pub fn check(name: &str, backend: &dyn Backend) {
    let promise = PROMISES.iter().find(|(known, _)| *known == name);
    let (_, promise) = promise.expect("a name from PROMISES");
    promise(backend);
}
