//! Segment mode: unique and in order whatever threads, stores and operators do; never an error while
//! the database answers.

mod restarts;
mod stores;

#[cfg(feature = "async")]
mod async_calls;
mod end;
mod faults;
mod order;
#[cfg(feature = "serial")]
mod serials;
mod tags;
mod waiting;
