//! Segment mode: unique and in order whatever threads, stores and operators do; never an error while
//! the database answers.

#[path = "segments/restarts.rs"]
mod restarts;
#[path = "segments/stores.rs"]
mod stores;

#[cfg(feature = "async")]
#[path = "segments/async_calls.rs"]
mod async_calls;
#[path = "segments/end.rs"]
mod end;
#[path = "segments/faults.rs"]
mod faults;
#[path = "segments/order.rs"]
mod order;
#[path = "segments/tags.rs"]
mod tags;
#[path = "segments/waiting.rs"]
mod waiting;
