//! Journal of the keeper: recent events of a service's machine IDs.

use std::collections::VecDeque;

use vesta_intf::UnixMillis;

use crate::sync::Mutex;

/// Maximum number of events kept.
const MOST: usize = 200;

/// Event of a machine ID.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Sequence number, from 1.
    pub number: u64,
    /// Time, by this host's clock.
    pub at: UnixMillis,
    /// Kind of event.
    pub kind: EventKind,
    /// Machine ID; if the event concerns none, the one held last.
    pub machine: u64,
    /// One sentence for people.
    pub text: String,
}

/// Kind of an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A machine ID was claimed at start.
    Claimed,
    /// Another machine ID was claimed while running, or the same one again.
    Moved,
    /// No machine ID could be claimed; the claim is retried.
    NotClaimed,
    /// The store did not answer a renewal; it is retried.
    NotRenewed,
    /// The store answers again.
    RenewedLate,
    /// Another process took the machine ID over.
    Fenced,
    /// The store shows an earlier state than the one it acknowledged.
    WentBack,
    /// Another process holds the machine ID, and this one stands by.
    StandingBy,
    /// The machine ID was released.
    Released,
    /// The machine ID was sealed: it makes no more IDs.
    Sealed,
    /// The clock is suspect, or far behind what was issued.
    Clock,
    /// The store may forget what it acknowledged, or is trusted again.
    Doubt,
    /// Another, older store stands behind the same URL: the machine ID makes no more IDs.
    TwoStores,
}

impl EventKind {
    /// Name in texts: `renewed-late`.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Claimed => "claimed",
            EventKind::Moved => "moved",
            EventKind::NotClaimed => "not-claimed",
            EventKind::NotRenewed => "not-renewed",
            EventKind::RenewedLate => "renewed-late",
            EventKind::Fenced => "fenced",
            EventKind::WentBack => "went-back",
            EventKind::StandingBy => "standing-by",
            EventKind::Released => "released",
            EventKind::Sealed => "sealed",
            EventKind::Clock => "clock",
            EventKind::Doubt => "doubt",
            EventKind::TwoStores => "two-stores",
        }
    }
}

/// Journal of the last events.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<VecDeque<Event>>);

impl Journal {
    pub(super) fn note(
        &self,
        at: UnixMillis,
        kind: EventKind,
        machine: u64,
        text: impl Into<String>,
    ) {
        let mut events = self.0.lock();
        let number = events.back().map_or(1, |last| last.number + 1);
        if events.len() == MOST {
            events.pop_front();
        }
        events.push_back(Event {
            number,
            at,
            kind,
            machine,
            text: text.into(),
        });
    }

    /// Events after this number that are still kept.
    pub(crate) fn since(&self, number: u64) -> Vec<Event> {
        self.0
            .lock()
            .iter()
            .filter(|event| event.number > number)
            .cloned()
            .collect()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn last_events_are_kept_in_order() {
        let journal = Journal::default();
        for machine in 0..250 {
            journal.note(UnixMillis(machine), EventKind::Claimed, machine, "x");
        }
        let all = journal.since(0);
        assert_eq!((all.len(), all[0].number, all[199].number), (MOST, 51, 250));
        let some = journal.since(248);
        assert_eq!(
            some.iter().map(|event| event.machine).collect::<Vec<_>>(),
            [248, 249]
        );
        assert!(journal.since(250).is_empty());
    }
}
