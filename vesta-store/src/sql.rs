//! What MySQL and PostgreSQL have in common: everything but the texts of the statements, how a
//! connection is made, and what an error number means.
//!
//! Each statement commits by itself, so a connection never holds a transaction open, and what is
//! given up halfway leaves nothing behind.

mod client;
mod dialect;
mod errors;
mod records;
mod segments;
mod store;
mod tables;
mod url;
mod worker_nodes;

pub(crate) use client::Client;
pub(crate) use dialect::{Cells, Dialect, Statements, Tables, Value};
pub(crate) use errors::{Class, Failure, ReadOnly};
pub(crate) use segments::SegmentStatements;
pub(crate) use store::{SqlStore, delegate};
pub(crate) use url::{Shown, options_of};
pub(crate) use worker_nodes::Highest;

#[cfg(feature = "mysql")]
pub(crate) use client::Request;
