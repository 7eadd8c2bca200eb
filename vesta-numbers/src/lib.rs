//! Numbers beside IDs: [segments](segment), increasing with few gaps, and [serials](serial), formatted by a pattern.
//!
//! ```
//! use std::sync::Arc;
//! use vesta_numbers::segment::{NewSegmentTag, SegmentService};
//! use vesta_numbers::testing::MemorySegmentStore;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let segments = SegmentService::builder(Arc::new(MemorySegmentStore::new())).build()?;
//!     segments.create(&NewSegmentTag::new("orders", 1000)?)?;
//!     let orders = segments.segment("orders")?; // looked up once: keep it
//!     let first = orders.next()?;
//!     assert!(orders.next()? > first);
//!     Ok(())
//! }
//! ```
//!
//! It is built over the stores, the clock and the waits of `vesta-service`, and needs no async runtime either.
//!
//! Features: `async` adds asynchronous calls, `serial` adds serials.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::cast_precision_loss
)]

mod created;
#[cfg(all(feature = "serial", not(any(loom, shuttle))))]
pub mod rules;
pub mod segment;
#[cfg(all(feature = "serial", not(any(loom, shuttle))))]
pub mod serial;
pub mod testing;

pub use created::Created;
