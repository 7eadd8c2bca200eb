//! The client against a scripted server in the same process.

mod blocking;
mod calls;
mod endpoints;
mod fake;
mod fallback;
#[cfg(unix)]
mod fork;
mod prefetch;
#[cfg(feature = "tls")]
mod secure;
mod segment_prefetch;
mod segments;
mod serials;
mod setup;
mod trace;
