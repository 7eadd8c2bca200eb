//! The contract of Vesta: the definition of an ID, and the interface of services that generate IDs.
//!
//! ```
//! use vesta_intf::{Id, IdError, IdMeta};
//!
//! fn main() -> Result<(), IdError> {
//!     let meta = IdMeta::MAX_PEAK;
//!     let parts = Id { time: 1, seq: 2, machine: 3, ..Id::default() };
//!     let raw = meta.pack(&parts)?;
//!     assert_eq!(raw, (1 << 30) | (2 << 10) | 3);
//!     assert_eq!(meta.unpack(raw)?, parts);
//!     Ok(())
//! }
//! ```
//!
//! This crate has no mandatory dependencies and uses no clock, thread or I/O. Code written against
//! [`IdService`] runs unchanged with an embedded generator (`vesta-service`) or a remote one
//! (`vesta-client`).
//!
//! Features: `grpc` adds the gRPC protocol (`grpc` module), `serde` adds serialisation
//! of [`Id`], [`MakeId`] and [`VestaId`], `shuffle` adds shuffled numbers. `sqlx` and `diesel` map
//! a [`VestaId`] to a `BIGINT` column, `utoipa` describes it in an OpenAPI document.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::cast_precision_loss
)]

mod check;
mod error;
mod field;
mod format;
mod id;
mod make_id;
mod meta;
mod names;
mod plain;
mod preset;
mod serial;
mod service;
#[cfg(feature = "shuffle")]
mod shuffle;
mod time;
mod uuid;
mod uuid_v7;
mod vesta_id;

#[cfg(feature = "grpc")]
pub mod grpc;

pub use check::CheckSymbol;
pub use error::{ErrorKind, IdError, NotReady, NotReadyReason};
pub use field::{Field, FieldOrder};
pub use format::{IdFormat, IdText};
pub use id::{GenMethod, Id, IdRun, IdType};
pub use make_id::MakeId;
pub use meta::{IdMeta, LayoutSpec, SequenceStart};
pub use names::{MAX_TAG, check_name, check_tag};
pub use plain::{is_control, plain, plain_lines};
pub use serial::ParsedSerial;
pub use service::{AsyncIdService, IdService};
#[cfg(feature = "shuffle")]
pub use shuffle::{Shuffle, ShuffleKey};
pub use time::{TimeUnit, UnixMillis};
pub use uuid_v7::UuidV7;
pub use vesta_id::VestaId;
#[cfg(feature = "serde")]
pub use vesta_id::serialized::number as id_as_number;

/// What `vesta-explain` and `vesta-numbers` share with this crate; not for others, and it may change with any version.
#[doc(hidden)]
pub mod inside {
    pub use crate::check::Symbols;
    pub use crate::format::{BASE36, BASE62, CROCKFORD, DECIMAL, Digits};
    pub use crate::time::{civil_from_days, days_from_civil};
    pub use crate::uuid::{id_of, parse_any};
}

/// The gRPC protocol in Protocol Buffers: `vesta/v1/vesta.proto`.
pub const PROTO: &str = include_str!("../proto/vesta/v1/vesta.proto");

/// Maximum number of IDs per batch call (`gen_ids` over gRPC; the maximum of `GET /v1/ids` is lower).
pub const MAX_IDS_PER_CALL: u32 = 10_000;

/// Maximum number of IDs per call that returns runs.
pub const MAX_RUN_IDS_PER_CALL: u32 = 1_048_576;
