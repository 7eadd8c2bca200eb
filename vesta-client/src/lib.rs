//! The client of `vesta serve`: IDs over gRPC, asynchronous or blocking.
//!
//! ```no_run
//! use vesta_client::{Client, IdError, Prefetch, VestaId};
//!
//! async fn order() -> Result<(), IdError> {
//!     let client = Client::builder()
//!         .endpoint("http://10.0.0.1:50051")
//!         .endpoint("http://10.0.0.2:50051")
//!         .prefetch(Prefetch::default())
//!         .build()?;
//!     let id: VestaId = client.next().await?; // from the prefetch buffer: a few nanoseconds
//!     println!("{id} contains {:?}", client.exp_id(id).await?);
//!     Ok(())
//! }
//! ```
//!
//! * [`Client`] implements [`AsyncIdService`], [`blocking::Client`] implements [`IdService`]: code
//!   written against the traits runs with an embedded generator or with servers unchanged.
//! * Each call has a **deadline**. Within it, errors that may pass are retried: on another endpoint at
//!   once, on the same one after a random backoff and never before the retry delay of the server. A
//!   budget keeps retries from adding more than a tenth to the load ([`Retry`]). Retrying is always
//!   safe: if a response was lost, its IDs were never used, and unused IDs are harmless.
//! * With [`Order::Strict`] and servers that stand by for one machine ID, IDs follow real time: one that is asked for
//!   after another was returned is larger, also over a fail-over.
//! * With [`Prefetch`], IDs are buffered in memory. An ID then costs a few nanoseconds and no await,
//!   and callers are served from the buffer while every server is down.
//! * [`Client::gen_runs`] takes very many IDs: up to 1,048,576 in a few dozen bytes.
//! * With servers in segment mode, [`Client::next_id`] returns the increasing numbers of a tag,
//!   and [`Client::segment`] prefetches them.
//! * With servers that have serials, [`Client::serial`] returns formatted numbers, such as
//!   `INV-261122-0000427`.
//! * With a [fallback](Builder::fallback), a local `IdService` makes the IDs while no server can.
//!
//! The client never clamps a count. It does not know the layout of the servers: the servers explain and
//! assemble IDs.
//!
//! Build a client after forking, never before: a forked process has copies of the prefetched IDs, and none of
//! the tasks that talk to the servers. In the child, a client refuses every call ([`IdError::Sealed`]).
#![deny(unsafe_code)] // fork.rs allows one line, with its reason

pub mod blocking;
mod builder;
mod client;
mod endpoints;
mod fallback;
mod fork;
mod prefetch;
mod remote;
mod retry;
mod secret;
mod serial;
mod tls;
mod trace;

pub use builder::Builder;
pub use client::{Client, Segment, SerialTag, Stats};
pub use endpoints::Order;
pub use prefetch::{Prefetch, SegmentStats};
pub use retry::Retry;
pub use serial::Serial;

// Re-exported so that a program needs only this crate to use the client.
pub use vesta_intf::{
    AsyncIdService, CheckSymbol, ErrorKind, Id, IdError, IdRun, IdService, MakeId, ParsedSerial,
    VestaId,
};

// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../docs/use/client.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../../docs/use/ordered.md")]
struct Ordered;
