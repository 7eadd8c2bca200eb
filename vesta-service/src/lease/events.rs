//! Events of the keeper: the last ones of the machine IDs of a service.

use std::collections::VecDeque;

use vesta_intf::UnixMillis;

use crate::sync::Mutex;

/// Events that are remembered.
const MOST: usize = 200;

/// Something that happened to a machine ID.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// From 1 on, one after another.
    pub number: u64,
    /// When, by this host's clock.
    pub at: UnixMillis,
    /// The kind of event.
    pub kind: EventKind,
    /// The machine ID; of an event about none, the one that was held last.
    pub machine: u64,
    /// One sentence for people.
    pub text: String,
}

/// The kind of an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A machine ID was claimed at start.
    Claimed,
    /// Another machine ID was claimed while running, or the same one anew.
    Moved,
    /// None could be claimed; it is tried again.
    NotClaimed,
    /// The store did not answer to a renewal; it is tried again.
    NotRenewed,
    /// The store answered again.
    RenewedLate,
    /// Another process took it over.
    Fenced,
    /// The store shows an earlier state than it acknowledged.
    WentBack,
    /// It was given back.
    Released,
    /// It makes no more IDs.
    Sealed,
    /// The clock is suspect, or far behind what was issued.
    Clock,
    /// The store may forget what it acknowledged, or does no more.
    Doubt,
}

impl EventKind {
    /// The name in texts: `renewed-late`.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Claimed => "claimed",
            EventKind::Moved => "moved",
            EventKind::NotClaimed => "not-claimed",
            EventKind::NotRenewed => "not-renewed",
            EventKind::RenewedLate => "renewed-late",
            EventKind::Fenced => "fenced",
            EventKind::WentBack => "went-back",
            EventKind::Released => "released",
            EventKind::Sealed => "sealed",
            EventKind::Clock => "clock",
            EventKind::Doubt => "doubt",
        }
    }
}

/// The last events, for whoever asks.
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

    /// Those after this number that are still remembered.
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
    fn the_last_ones_are_remembered_in_their_order() {
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
