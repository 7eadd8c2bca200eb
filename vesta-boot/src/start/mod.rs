//! A program from its command line to its exit code.

pub(crate) mod assemble;
pub(crate) mod container;
pub(crate) mod error;
pub(crate) mod invocation;
pub(crate) mod offered;
pub(crate) mod program;
pub(crate) mod running;
pub(crate) mod shutdown;
pub(crate) mod stores;
mod summary;
#[cfg(not(feature = "otel"))]
#[path = "no_traces.rs"]
pub(crate) mod traces;
#[cfg(feature = "otel")]
pub(crate) mod traces;
pub(crate) mod version;
