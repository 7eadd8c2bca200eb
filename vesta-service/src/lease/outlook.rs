//! Outlook: the result of a start, for an operator's check before it. Changes nothing.

use std::path::Path;
use std::time::Duration;

use vesta_intf::{IdMeta, UnixMillis};

use super::state::{DOUBT_CHECK, MAX_SKEW};
use super::{HostState, Leases, Local, Own, Plan, Snapshot, StateFolder, USUAL_DOUBTFUL_WINDOW};
use crate::clock::MAX_LEAD;
use crate::error::BuildError;
use crate::sequence::MAX_BORROW_MILLIS;

impl Leases {
    /// The refusal of a start on this host, if the store does not know what it once acknowledged to it. `None` is a
    /// namespace that does not exist.
    pub fn forgotten(
        &self,
        folder: &Path,
        layout: &IdMeta,
        now: Option<&Snapshot>,
    ) -> Option<BuildError> {
        let folder = StateFolder {
            path: folder.into(),
            namespace: self.name().into(),
            fingerprint: layout.fingerprint(),
            place: self.store().place(),
        };
        let lost = |local: &Local| match now {
            None => local.record.namespace != 0,
            Some(snapshot) => {
                let doubted = snapshot.namespace.doubt.is_some();
                !local.is_known_to(snapshot, if doubted { u64::MAX } else { 0 })
            }
        };
        let uuid = now.map(|snapshot| snapshot.namespace.uuid);
        let locals = HostState::new(Some(folder), Own::default()).survey();
        let mut locals = locals.into_iter().map(|local| match uuid {
            Some(uuid) => local.of(uuid),
            None => local,
        });
        let local = locals.find(lost)?;
        let tick = local.record.bound >> layout.bits(vesta_intf::Field::Seq);
        Some(BuildError::StoreRegressed {
            store: self.store().describe(),
            namespace: self.name().into(),
            machine: local.machine,
            used_until: layout.moment_of(tick).unwrap_or_default(),
        })
    }

    /// Time from a start to its first ID, if the store may forget. Every new ID must lie above all that may be lost.
    /// `window` is the one that a start uses under a doubt.
    pub fn first_id_after(
        &self,
        found: Option<&Snapshot>,
        window: Duration,
        now: UnixMillis,
    ) -> Duration {
        let own = window.max(USUAL_DOUBTFUL_WINDOW) + MAX_SKEW;
        let distance = match found {
            Some(Snapshot { namespace, .. }) if namespace.doubt.is_some() => {
                Plan::distance(namespace.doubt.as_ref(), now)
            }
            // Processes that do not know of the doubt yet may hold windows that are longer.
            Some(found) if !found.records.is_empty() => {
                let usual = self.store().usual_window() + Duration::from_millis(MAX_BORROW_MILLIS);
                DOUBT_CHECK + found.namespace.window.max(usual) + MAX_LEAD + MAX_SKEW
            }
            _ => own,
        };
        distance.max(own).saturating_sub(MAX_LEAD)
    }
}
