//! A pool of machine IDs.

use serde::Serialize;

use super::{Long, Row};

/// Why a store may forget acknowledged writes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Doubt {
    /// Moment at which it was written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Moment before which everything ends that was reserved without knowing of the doubt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// Longest window of a process that knows of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_window_ms: Option<u64>,
    /// The reason, for people.
    pub reason: String,
}

impl Doubt {
    pub(crate) fn because(reason: String) -> Self {
        Self {
            since: None,
            reach: None,
            longest_window_ms: None,
            reason,
        }
    }
}

/// A namespace with its machine IDs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// The store.
    pub store: String,
    /// Why the store may forget acknowledged writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Identity of the one database that is written, if that is all that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// Name of the namespace.
    pub namespace: String,
    /// Its identity.
    pub uuid: String,
    /// Fingerprint of its layout.
    pub fingerprint: String,
    /// The layout, if it is the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<&'static str>,
    /// Longest window of a process.
    pub longest_window_ms: u64,
    /// Position below which nothing is claimed.
    pub floor: Long,
    /// The same as a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_time: Option<String>,
    /// The machine IDs with a record.
    pub records: Vec<MachineRecord>,
    /// The first machine ID that this program may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_machine: Option<u64>,
    /// The last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_machine: Option<u64>,
}

/// The record of a machine ID. One that was deleted has only a number and a state.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineRecord {
    /// The machine ID.
    pub machine: u64,
    /// Its state.
    pub state: &'static str,
    /// Moment of the last change, if it has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired_since: Option<String>,
    /// Host of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Process of its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<u64>,
    /// Position below which its owner makes IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Long>,
    /// The same as a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_time: Option<String>,
    /// Moment of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_change: Option<String>,
}

impl Row for MachineRecord {
    const COLUMNS: &'static [&'static str] = &[
        "machine",
        "state",
        "host",
        "pid",
        "claim",
        "bound time",
        "last change",
    ];
}
