//! Segment mode: unique and ordered numbers whatever threads, stores and operators do; no error
//! while the database answers.

mod restarts;
mod stores;

#[cfg(feature = "async")]
mod async_calls;
mod end;
mod faults;
mod order;
#[cfg(feature = "serial")]
mod patterns;
#[cfg(feature = "serial")]
mod serials;
mod tags;
#[cfg(feature = "serial")]
mod templates;
mod waiting;
