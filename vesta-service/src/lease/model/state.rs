//! One state of the model. Small, because a search holds millions: numbers have 8 bits, and an `Attempt` or a
//! `Holding` of the product is kept as the few numbers it is made from.

use std::sync::LazyLock;

use super::{Protocol, small};
use crate::lease::state::{Attempt, Write};
use crate::lease::{Record, Secret};

/// Uuid of the namespace.
pub(super) const NAMESPACE: u128 = 1;
pub(super) const PROCESSES: usize = 3;
pub(super) const MACHINES: usize = 2;

/// Record without the fields that are for people. One without a birth does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Rec {
    pub(super) birth: u8,
    pub(super) epoch: u8,
    pub(super) owner: u8,
    pub(super) from: u8,
    pub(super) bound: u8,
    pub(super) attempt: u8,
    pub(super) released: bool,
}

/// Owners in the product's form, by the numbers of their secrets: a search would hash them a hundred million times.
static OWNERS: LazyLock<[u128; 256]> = LazyLock::new(|| {
    std::array::from_fn(|number| match number {
        0 => 0,
        _ => Secret::new(number as u128).owner(),
    })
});

impl From<Rec> for Record {
    fn from(rec: Rec) -> Self {
        Record {
            namespace: NAMESPACE,
            birth: rec.birth.into(),
            epoch: rec.epoch.into(),
            owner: OWNERS[usize::from(rec.owner)],
            secret: Secret::new(rec.owner.into()),
            from: rec.from.into(),
            bound: rec.bound.into(),
            attempt: rec.attempt.into(),
            released: rec.released,
            ..Record::default()
        }
    }
}

impl From<&Record> for Rec {
    fn from(record: &Record) -> Self {
        Rec {
            birth: small(record.birth),
            epoch: small(record.epoch),
            owner: small(record.secret.number() * u128::from(record.owner > 0)),
            from: small(record.from),
            bound: small(record.bound),
            attempt: small(record.attempt),
            released: record.released,
        }
    }
}

impl Rec {
    /// The product's form of it.
    pub(super) fn record(self) -> Option<Record> {
        (self.birth > 0).then(|| self.into())
    }
}

/// Births of the marked records, all in one bucket; 0 for those without a mark.
pub(super) type Births = [u8; MACHINES];

/// Compare-and-set in flight. The expected value was in the store once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    Record { machine: u8, old: Rec, new: Rec },
    Marks { old: Births, new: Births },
}

impl Request {
    /// True if it creates a record, which happens once at most.
    pub(super) const fn creates(&self) -> bool {
        matches!(self, Request::Record { old, .. } if old.birth == 0)
    }
}

/// Reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Answer {
    Done,
    Conflict(Rec),
    /// The bucket of marks had changed to this one.
    Marks(Births),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Process {
    /// Has no machine ID. `last` is the lease it had, kept only for the fault that revives it.
    Idle {
        last: Option<(u8, u8)>,
    },
    Claiming(Claiming),
    Holding(Holding),
}

/// Attempt, between two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Claiming {
    pub(super) machine: u8,
    /// Random number of all its requests.
    pub(super) number: u8,
    pub(super) floor: u8,
    pub(super) record: Rec,
    pub(super) births: Births,
    pub(super) from: Option<u8>,
    pub(super) mine: Option<u8>,
    pub(super) sent: Option<Sent>,
    /// True once the creation that was sent has arrived, so that it is not sent again.
    pub(super) arrived: bool,
    pub(super) reply: Option<Answer>,
    pub(super) last: Option<(u8, u8)>,
}

/// New value of the change that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sent {
    Record(Rec),
    Marks(Births),
}

impl Claiming {
    /// Its pending change as a request.
    pub(super) fn request(&self) -> Option<Request> {
        Some(match self.sent? {
            Sent::Record(new) => Request::Record {
                machine: self.machine,
                old: self.record,
                new,
            },
            Sent::Marks(new) => Request::Marks {
                old: self.births,
                new,
            },
        })
    }

    /// True if the product gives the attempt up instead of sending its request again.
    pub(super) fn is_sent_once(&self) -> bool {
        let sent = match self.sent {
            Some(Sent::Record(new)) => Some(Write::Record {
                old: self.record.record(),
                new: new.into(),
            }),
            _ => None,
        };
        Attempt {
            sent,
            ..Attempt::default()
        }
        .ends_unanswered()
    }

    /// Its pending claim.
    fn claim(&self) -> Option<Rec> {
        match self.sent? {
            Sent::Record(new) if new.epoch > 0 => Some(new),
            _ => None,
        }
    }
}

/// Lease and its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Holding {
    pub(super) machine: u8,
    /// As last acknowledged.
    pub(super) record: Rec,
    /// Sent and not yet answered.
    pub(super) pending: Option<Rec>,
    /// Position at which the lease was sealed, if it was.
    pub(super) sealed: Option<u8>,
    /// True once the store was found to have gone back: the floor has yet to be raised.
    pub(super) raising: bool,
    /// True in the child of a fork: no thread of the product runs in it.
    pub(super) forked: bool,
    pub(super) reply: Option<Answer>,
    /// First position not yet issued.
    pub(super) next: u8,
    /// Bound of the lease as the process knows it.
    pub(super) bound: u8,
}

impl Holding {
    /// Positions that it may still issue.
    fn line(&self) -> std::ops::Range<u8> {
        if self.sealed.is_some() || self.forked {
            return 0..0;
        }
        self.next..self.bound.max(self.next)
    }

    /// Its pending change as a request.
    pub(super) fn request(&self) -> Option<Request> {
        self.pending.map(|new| Request::Record {
            machine: self.machine,
            old: self.record,
            new,
        })
    }
}

/// Events that must not happen, and one that only a copy may cause.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(u16);

impl Mark {
    pub(super) const REPEATED: Mark = Mark(1);
    pub(super) const UNCOVERED: Mark = Mark(2);
    pub(super) const LOWERED: Mark = Mark(4);
    pub(super) const RETURNED: Mark = Mark(8);
    pub(super) const BELOW_FLOOR: Mark = Mark(16);
    /// A process issued a position twice.
    pub(super) const OWN_REPEATED: Mark = Mark(64);
    /// A holder that saw the store go back gave its machine ID up although the floor lies below its
    /// positions.
    pub(super) const UNPROTECTED: Mark = Mark(128);
    /// A holder whose request was refused never issues again.
    pub(super) const STUCK: Mark = Mark(256);
    pub(super) const VIOLATIONS: Mark = Mark(31 + 64 + 128 + 256);
    /// A position that a copied process had reserved or requested was repeated.
    pub(super) const COPY_REPEATED: Mark = Mark(32);
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct State {
    pub(super) records: [Rec; MACHINES],
    pub(super) births: Births,
    /// Floor of the namespace.
    pub(super) floor: u8,
    /// Floor at the moment when the claim in force took effect.
    pub(super) claimed_above: [u8; MACHINES],
    /// Number of deleted records.
    pub(super) deleted: u8,
    pub(super) processes: [Process; PROCESSES],
    /// Requests that no process waits for any more and that may still take effect.
    pub(super) late: Vec<Request>,
    /// Number of requests that each process has sent; it determines the numbers of the next ones.
    pub(super) sent: [u8; PROCESSES],
    /// Part of each number that distinguishes the processes. Two are equal only after a copy that draws the
    /// same random numbers.
    pub(super) seeds: [u8; PROCESSES],
    /// State files of processes that do not hold the machine ID now.
    pub(super) remembered: [[Option<Rec>; MACHINES]; PROCESSES],
    /// One bit for each issued position.
    pub(super) issued: [u32; MACHINES],
    /// First position beyond what a copied process had reserved or requested; 0 if none was copied.
    pub(super) exposed: [u8; MACHINES],
    /// True if the memory of a process was copied.
    pub(super) copied: bool,
    /// Earlier state of the store, to which it goes back.
    pub(super) backup: Option<Backup>,
    /// True once the store went back.
    pub(super) went_back: bool,
    /// One bit for each position that a process issued; kept only if the store goes back.
    pub(super) own: [[u16; MACHINES]; PROCESSES],
    marks: u16,
}

/// Earlier state of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Backup {
    pub(super) records: [Rec; MACHINES],
    pub(super) births: Births,
    pub(super) floor: u8,
}

impl Default for State {
    fn default() -> Self {
        Self {
            records: Default::default(),
            births: Default::default(),
            floor: 0,
            claimed_above: Default::default(),
            deleted: 0,
            processes: [Process::Idle { last: None }; PROCESSES],
            late: Vec::new(),
            sent: Default::default(),
            seeds: [0, 1, 2],
            remembered: Default::default(),
            issued: Default::default(),
            exposed: Default::default(),
            copied: false,
            backup: None,
            went_back: false,
            own: Default::default(),
            marks: 0,
        }
    }
}

impl State {
    /// True if records may be in an earlier state: properties that need an unbroken store do not hold.
    pub(super) fn forgot(&self) -> bool {
        self.deleted > 0 || self.went_back
    }

    pub(super) fn has_any(&self, marks: Mark) -> bool {
        self.marks & marks.0 != 0
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        self.marks |= mark.0;
    }

    pub(super) fn may_send(&self, limit: u8) -> bool {
        self.sent.iter().sum::<u8>() < limit
    }

    /// Draws a number that no request had before, as a random one would be. It does not depend on what other
    /// processes did, so that fewer states differ only in it.
    pub(super) fn draw(&mut self, process: usize) -> u8 {
        self.sent[process] += 1;
        self.sent[process] + 16 * self.seeds[process]
    }

    fn holders(&self) -> impl Iterator<Item = &Holding> {
        self.processes.iter().filter_map(|process| match process {
            Process::Holding(holding) => Some(holding),
            _ => None,
        })
    }

    fn bounds_cover_the_issued(&self) -> bool {
        (0..MACHINES).all(|machine| {
            let covered = self.records[machine].bound.max(self.exposed[machine]);
            self.forgot() || self.issued[machine] >> covered == 0
        })
    }

    /// True if leases that are not sealed share only positions that a copy had reserved or requested.
    fn lines_are_apart(&self) -> bool {
        self.went_back
            || self.holders().enumerate().all(|(i, one)| {
                self.holders()
                    .skip(i + 1)
                    .filter(|other| other.machine == one.machine)
                    .all(|other| {
                        let from = one.line().start.max(other.line().start);
                        let to = one.line().end.min(other.line().end);
                        from >= to || to <= self.exposed[usize::from(one.machine)]
                    })
            })
    }

    fn lines_are_unused(&self) -> bool {
        self.went_back
            || self.holders().all(|holding| {
                let machine = usize::from(holding.machine);
                let mut line = holding.line();
                line.all(|p| p < self.exposed[machine] || self.issued[machine] & (1 << p) == 0)
            })
    }
}

type Condition = fn(&Protocol, &State) -> bool;

/// The promise itself.
pub(super) const UNIQUE: &str = "no position is issued twice";

/// Guarantee from what a process itself remembers.
pub(super) const OWN: &str = "no process issues a position twice, whatever the store forgets";

/// Guarantee after a store went back under its holders.
pub(super) const PROTECTED: &str =
    "a holder that sees the store go back leaves a floor above all that it issued";

/// Guarantee against a store that refuses.
pub(super) const GOES_ON: &str = "a holder issues again after the last refusal";

/// Guarantee of a floor.
pub(super) const ABOVE_FLOOR: &str = "no claim issues below a floor that stood before it";

/// Properties of every state.
pub(super) fn rules() -> [(&'static str, Condition); 11] {
    [
        (UNIQUE, |_, state| !state.has_any(Mark::REPEATED)),
        ("what is issued lies below a durable bound", |_, state| {
            !state.has_any(Mark::UNCOVERED)
        }),
        (ABOVE_FLOOR, |_, state| !state.has_any(Mark::BELOW_FLOOR)),
        ("a bound goes down by a release only", |_, state| {
            !state.has_any(Mark::LOWERED)
        }),
        ("a record never returns to an earlier state", |_, state| {
            !state.has_any(Mark::RETURNED)
        }),
        ("nothing issued lies at or above the bound", |_, state| {
            state.bounds_cover_the_issued()
        }),
        ("no two lines may still issue the same", |_, state| {
            state.lines_are_apart()
        }),
        ("no line may still issue what was issued", |_, state| {
            state.lines_are_unused()
        }),
        (OWN, |_, state| !state.has_any(Mark::OWN_REPEATED)),
        (PROTECTED, |_, state| !state.has_any(Mark::UNPROTECTED)),
        (GOES_ON, |_, state| !state.has_any(Mark::STUCK)),
    ]
}

/// States that the search must reach: the corner cases that the rules cover.
pub(super) fn examples() -> [(&'static str, Condition); 9] {
    [
        ("a late extend is refused after a takeover", |_, state| {
            state.holders().any(|h| {
                h.sealed.is_none()
                    && matches!(h.reply, Some(Answer::Conflict(rec)) if rec.epoch > h.record.epoch)
            })
        }),
        (
            "an extend whose reply was lost is recognised by its attempt",
            |_, state| {
                state.holders().any(|h| {
                    h.pending
                        .is_some_and(|new| !new.released && h.reply == Some(Answer::Conflict(new)))
                })
            },
        ),
        (
            "a release whose reply was lost is recognised by its attempt",
            |_, state| {
                state.holders().any(|h| {
                    h.pending
                        .is_some_and(|new| new.released && h.reply == Some(Answer::Conflict(new)))
                })
            },
        ),
        (
            "a claim whose reply was lost is recognised by its attempt",
            |_, state| {
                state.processes.iter().any(|process| {
                    let Process::Claiming(c) = process else {
                        return false;
                    };
                    c.claim()
                        .is_some_and(|new| c.reply == Some(Answer::Conflict(new)))
                })
            },
        ),
        (
            "a claim that was given up takes effect before the next one",
            |_, state| {
                state.processes.iter().any(|process| {
                    let Process::Claiming(c) = process else {
                        return false;
                    };
                    let Some(Answer::Conflict(current)) = c.reply else {
                        return false;
                    };
                    let (mine, other) = (c.number, current.attempt);
                    c.claim().is_some_and(|new| new.epoch == current.epoch)
                        && mine != other
                        && mine / 16 == other / 16
                })
            },
        ),
        (
            "a predecessor still issues beside its successor",
            |_, state| {
                state.holders().any(|one| {
                    let machine = usize::from(one.machine);
                    !one.line().is_empty()
                        && state.issued[machine] >> one.bound != 0
                        && state.records[machine].epoch > one.record.epoch
                })
            },
        ),
        (
            "a successor begins where the line was sealed, inside a window",
            |model, state| {
                state.processes.iter().any(|process| {
                    let Process::Claiming(c) = process else {
                        return false;
                    };
                    let rules = &model.rules;
                    c.from
                        .is_some_and(|from| rules.position(rules.tick(from.into())) < from.into())
                })
            },
        ),
        (
            "a process remembers a bound that was lowered since",
            |_, state| {
                state
                    .remembered
                    .iter()
                    .flat_map(|all| all.iter().zip(&state.records))
                    .any(|(remembered, rec)| {
                        remembered.is_some_and(|r| r.epoch == rec.epoch && r.bound > rec.bound)
                    })
            },
        ),
        ("a release waits for an extend", |_, state| {
            state
                .holders()
                .any(|h| h.sealed.is_some() && h.pending.is_some_and(|new| !new.released))
        }),
    ]
}
