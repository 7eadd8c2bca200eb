//! Status of a program and its machine IDs, in the order useful to a human reader.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use vesta_service::options::MachineStatus;

use super::{Bits, Doubt, Outcomes, Whole};
use crate::ticks::millis;

/// Status of a program.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Name of the program.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Moment of its start.
    pub started: String,
    /// True if calls for IDs are expected to succeed.
    pub ready: bool,
    /// The reason why they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_because: Option<String>,
    /// The service, once it has started.
    #[serde(flatten)]
    pub service: Option<ServiceNow>,
    /// IDs issued per second in the last two minutes, the oldest first; unknown times are left out.
    pub rates: Vec<Rate>,
}

/// IDs issued per second, on average over two seconds.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Time since the end of the two seconds.
    pub age_ms: u64,
    /// IDs issued per second.
    pub per_second: f64,
}

/// Status of the service.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceNow {
    /// The machine ID, or the first of several.
    pub machine: u64,
    /// How many machine IDs it holds.
    pub machines_held: usize,
    /// How many of them are expected to make IDs.
    pub machines_ready: usize,
    /// Where they come from.
    pub machine_source: String,
    /// Their namespace.
    pub namespace: String,
    /// The layout of its IDs.
    pub layout: &'static str,
    /// The widths of its fields.
    pub bits: Bits,
    /// Their sum.
    pub total_bits: u8,
    /// Maximum number of IDs per second, by all machine IDs together.
    pub capacity_per_second: u64,
    /// Moment at which the layout runs out of IDs.
    pub ends: String,
    /// Milliseconds until then.
    pub layout_left_ms: u64,
    /// The populator.
    pub populator: &'static str,
    /// The leases of all machine IDs together.
    pub lease: LeaseOfAll,
    /// Each machine ID, up to a maximum.
    pub machines: Vec<MachineNow>,
    /// Machine IDs of the pool by state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<BTreeMap<&'static str, u64>>,
    /// Segment mode, if it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Whole>,
    /// Serials, if they are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serials: Option<Whole>,
}

/// The leases of all machine IDs together.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseOfAll {
    /// As one lease.
    #[serde(flatten)]
    pub lease: Lease,
    /// Positions lost to failed batches.
    pub positions_lost: u64,
}

/// A machine ID.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineNow {
    /// The machine ID.
    pub machine: u64,
    /// True if it is expected to make IDs.
    pub ready: bool,
    /// The reason why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_because: Option<String>,
    /// Its lease.
    #[serde(flatten)]
    pub lease: Lease,
}

/// A lease.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// How often the machine ID was claimed.
    pub claim: u64,
    /// Time until the durable bound is reached; left out without a lease, which has no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_left_ms: Option<u64>,
    /// How far issued time is ahead of the wall clock.
    pub lead_ms: u64,
    /// True if the wall clock is not trusted.
    pub clock_suspect: bool,
    /// Renewals by outcome.
    pub renewals: Outcomes,
    /// Time since the last acknowledged renewal.
    pub last_renewal_age_ms: u64,
    /// Leases lost to another owner.
    pub fenced: u64,
    /// Times the store showed an earlier state.
    pub store_went_back: u64,
    /// Machine IDs claimed again while running.
    pub rehomed: u64,
    /// Why the store may forget acknowledged writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Why the generator has stopped for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// The process that holds the machine ID, while this one stands by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing_by_for: Option<String>,
}

impl From<&MachineStatus> for Lease {
    fn from(status: &MachineStatus) -> Self {
        let (ok, failed) = (status.renewals_ok, status.renewals_failed);
        let doubt = status.doubt.as_ref().map(|doubt| Doubt {
            since: Some(doubt.since.to_string()),
            ..Doubt::because(doubt.why.clone())
        });
        Self {
            claim: status.epoch,
            window_left_ms: window_left(status.window_left),
            lead_ms: millis(status.lead),
            clock_suspect: status.clock_suspect,
            renewals: Outcomes { ok, failed },
            last_renewal_age_ms: millis(status.last_renewal_age),
            fenced: status.fenced_total,
            store_went_back: status.went_back_total,
            rehomed: status.rehomed_total,
            doubt,
            sealed: status.sealed.clone(),
            standing_by_for: status.holder.clone(),
        }
    }
}

impl From<&MachineStatus> for MachineNow {
    fn from(status: &MachineStatus) -> Self {
        Self {
            machine: status.machine,
            ready: status.ready,
            not_ready_because: status.not_ready_because.clone(),
            lease: status.into(),
        }
    }
}

/// Milliseconds left in the window; `None` without a lease, which has no bound.
pub(crate) fn window_left(left: Duration) -> Option<u64> {
    (left != Duration::MAX).then(|| millis(left))
}
