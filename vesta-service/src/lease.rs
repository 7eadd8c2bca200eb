//! The reservation of machine IDs and of the positions on their lines.
//!
//! Positions below a **bound** are issued only after that bound stands durably in a record that
//! changes by compare-and-set alone. A successor starts at or above it. So uniqueness rests on no
//! clock and on no lease: see docs/SAFETY.md for the argument.
//!
//! ```text
//!  claim.rs    choosing a record and taking it over              pure rules + the procedure
//!  state.rs    extending, releasing, being fenced                pure
//!  keeper.rs   the thread that does what state.rs says
//!  store.rs    the port: what a store has to offer
//!  file.rs     the store of a fixed ID: one file, locked for life
//!  shadow.rs   what this host remembers of the records it held
//! ```

pub(crate) mod claim;
mod file;
#[cfg(all(test, not(any(loom, shuttle))))]
mod fuzz;
pub(crate) mod keeper;
mod memory;
#[cfg(all(test, not(any(loom, shuttle))))]
mod model;
mod record;
pub(crate) mod shadow;
mod slot;
mod state;
mod store;
pub(crate) mod timing;

pub(crate) use file::check_namespace;
pub use file::{FileStore, StateFileError};
pub use memory::MemoryStore;
pub use record::{Expect, Record};
pub(crate) use store::ask_store;
pub use store::{Cas, LeaseStore, Namespace, StoreError};
pub use timing::Timing;
