//! The client against a server in the same process that does as it is told.

mod blocking;
mod calls;
mod endpoints;
mod fake;
mod fallback;
mod memory;
#[cfg(feature = "tls")]
mod secure;
mod segment_memory;
mod segments;
mod setup;
