//! A program from its command line to its exit code.

pub(crate) mod invocation;
pub(crate) mod program;
pub(crate) mod shutdown;
mod summary;
#[cfg(not(feature = "otel"))]
#[path = "no_traces.rs"]
pub(crate) mod traces;
#[cfg(feature = "otel")]
pub(crate) mod traces;
