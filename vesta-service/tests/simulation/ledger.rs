//! The checker: all issued positions as intervals, and the rules for them.

use std::collections::BTreeMap;
use std::fmt;

use vesta_intf::FieldOrder::{MachineTimeSeq, TimeMachineSeq, TimeSeqMachine};
use vesta_service::IdMeta;
use vesta_service::contract::{Id, IdRun};

/// The rule that an ID violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// It was already issued.
    Repeated,
    /// The positions of its machine ID went back, or stood still.
    NotAscending,
    /// It is in no window that its process was granted.
    NotGranted,
    /// Positions before it were skipped.
    LeftOut,
    /// It is more than five seconds ahead of the clock, or behind it.
    WrongTime,
    /// Its machine ID or time cannot be read.
    Unreadable,
    /// A refusal with a wrong reason, or one that must not reach callers.
    WrongRefusal,
    /// A refusal with a wrong retry delay.
    WrongRetryTime,
    /// A closed service continues.
    AfterTheEnd,
    /// A release returned a position other than the first unissued one.
    NotReturned,
    /// Anything else.
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Flaw {
    pub(crate) fault: Fault,
    pub(crate) text: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.fault, self.text)
    }
}

impl Flaw {
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(Fault::Other, text)
    }

    pub(crate) fn new(fault: Fault, text: impl Into<String>) -> Self {
        Self {
            fault,
            text: text.into(),
        }
    }
}

/// Positions `start..end` of one machine ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) machine: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The position that each machine ID of one process has reached.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    lines: Vec<Reached>,
    /// A tick starts at a sequence number below this one.
    pub(crate) begins_below: u64,
    /// Positions were lost in failed batches.
    pub(crate) lossy: bool,
}

#[derive(Debug)]
struct Reached {
    machine: u64,
    next: u64,
    /// The window as last queried.
    base: u64,
    end: u64,
}

/// All positions that one namespace issued.
#[derive(Debug)]
pub(crate) struct Ledger {
    decoder: Decoder,
    lines: BTreeMap<u64, Line>,
    /// The machine ID used last.
    open: (u64, Line),
    pub(crate) issued: u64,
    /// Digest of all IDs in order: two histories with the same digest are equal.
    pub(crate) digest: u64,
}

#[derive(Debug, Default)]
struct Line {
    /// Sorted, disjoint and not adjacent.
    intervals: Vec<(u64, u64)>,
}

impl Ledger {
    pub(crate) fn new(meta: &IdMeta) -> Self {
        Self {
            decoder: Decoder::new(meta),
            lines: BTreeMap::new(),
            open: (u64::MAX, Line::default()),
            issued: 0,
            digest: 0,
        }
    }

    /// Records an ID.
    #[inline]
    pub(crate) fn id(
        &mut self,
        id: u64,
        progress: &mut Progress,
        window: impl FnOnce(Stretch) -> (u64, u64),
    ) -> Result<Stretch, Flaw> {
        let (machine, start) = self.decoder.decode(id)?;
        self.stretch(
            Stretch {
                machine,
                start,
                end: start + 1,
            },
            progress,
            window,
        )
    }

    /// Records a run.
    pub(crate) fn run(
        &mut self,
        run: &IdRun,
        progress: &mut Progress,
        window: impl FnOnce(Stretch) -> (u64, u64),
    ) -> Result<Stretch, Flaw> {
        let count = u64::from(run.count);
        let last = run.first + run.step * (count - 1);
        let (machine, start) = self.decoder.decode(run.first)?;
        let (same, end) = self.decoder.decode(last)?;
        if machine != same || end.checked_sub(start) != Some(count - 1) {
            let text = format!("{run:?} is not a run of machine ID {machine}");
            return Err(Flaw::new(Fault::Unreadable, text));
        }
        self.stretch(
            Stretch {
                machine,
                start,
                end: end + 1,
            },
            progress,
            window,
        )
    }

    #[inline]
    fn stretch(
        &mut self,
        new: Stretch,
        progress: &mut Progress,
        window: impl FnOnce(Stretch) -> (u64, u64),
    ) -> Result<Stretch, Flaw> {
        let Stretch {
            machine,
            start,
            end,
        } = new;
        let flaw = |fault, what| {
            let text = format!("machine ID {machine}, positions {start:#x}..{end:#x}: {what}");
            Err(Flaw { fault, text })
        };
        if self.open.0 != machine {
            let line = self.lines.remove(&machine).unwrap_or_default();
            let (before, line) = std::mem::replace(&mut self.open, (machine, line));
            self.lines.insert(before, line);
        }
        let line = &mut self.open.1;
        let (begins_below, lossy) = (progress.begins_below, progress.lossy);
        let reached = progress.of(machine);
        if start < reached.base || end > reached.end {
            (reached.base, reached.end) = window(new);
            let Reached {
                base, end: granted, ..
            } = *reached;
            if start < base || end > granted {
                return flaw(
                    Fault::NotGranted,
                    format!("granted are {base:#x}..{granted:#x}"),
                );
            }
        }
        if start < reached.next {
            let what = format!("this process was at {:#x} already", reached.next);
            return flaw(Fault::NotAscending, what);
        }
        let next = reached.next.max(reached.base);
        let begins_a_tick = start & self.decoder.seq.1 < begins_below;
        if start != next && next != 0 && !begins_a_tick && !lossy {
            return flaw(
                Fault::LeftOut,
                format!("nothing was issued from {next:#x} on"),
            );
        }
        reached.next = end;
        if let Err((from, to)) = line.add(start, end) {
            return flaw(
                Fault::Repeated,
                format!("{from:#x}..{to:#x} was issued before"),
            );
        }
        self.issued += end - start;
        self.digest =
            (self.digest ^ start ^ machine << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ end;
        Ok(new)
    }

    /// Exclusive upper bound of the positions issued with this machine ID.
    pub(crate) fn end(&self, machine: u64) -> u64 {
        let line = if self.open.0 == machine {
            Some(&self.open.1)
        } else {
            self.lines.get(&machine)
        };
        line.and_then(|line| line.intervals.last())
            .map_or(0, |(_, end)| *end)
    }
}

impl Line {
    /// Adds an interval, or returns the one it overlaps.
    #[inline]
    fn add(&mut self, start: u64, end: u64) -> Result<(), (u64, u64)> {
        match self.intervals.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            Some(last) if last.1 > start => return self.insert(start, end),
            _ => self.intervals.push((start, end)),
        }
        Ok(())
    }

    /// Adds an interval that is not the last one: from an owner that was paused.
    #[cold]
    fn insert(&mut self, start: u64, end: u64) -> Result<(), (u64, u64)> {
        let at = self
            .intervals
            .partition_point(|interval| interval.1 <= start);
        match self.intervals.get(at) {
            Some(next) if next.0 < end => Err(*next),
            _ => {
                self.intervals.insert(at, (start, end));
                Ok(())
            }
        }
    }
}

impl Progress {
    /// Progress of a process that has just started.
    pub(crate) fn new(begins_below: u64) -> Self {
        Self {
            begins_below,
            ..Self::default()
        }
    }

    #[inline]
    fn of(&mut self, machine: u64) -> &mut Reached {
        let at = match self.lines.iter().position(|line| line.machine == machine) {
            Some(at) => at,
            None => {
                self.lines.push(Reached {
                    machine,
                    next: 0,
                    base: 0,
                    end: 0,
                });
                self.lines.len() - 1
            }
        };
        &mut self.lines[at]
    }

    /// Exclusive upper bound of the positions this process issued with a machine ID; 0 if it issued none.
    pub(crate) fn next(&mut self, machine: u64) -> u64 {
        self.of(machine).next
    }

    /// Queries windows again: they may have ended.
    pub(crate) fn forget_windows(&mut self) {
        self.lines.iter_mut().for_each(|line| line.end = 0);
    }
}

/// Unpacks IDs independently.
#[derive(Debug)]
struct Decoder {
    meta: IdMeta,
    time: (u32, u64),
    seq: (u32, u64),
    machine: (u32, u64),
    seq_bits: u32,
    /// The bits of all other fields, which are the same in every ID.
    rest: u64,
    expected: Option<u64>,
}

impl Decoder {
    fn new(meta: &IdMeta) -> Self {
        let spec = meta.spec();
        let [t, s, m] = [spec.time_bits, spec.seq_bits, spec.machine_bits].map(u32::from);
        let (time, seq, machine) = match spec.order {
            TimeSeqMachine => (m + s, m, 0),
            TimeMachineSeq => (m + s, 0, s),
            MachineTimeSeq => (s, 0, s + t),
        };
        let field = |shift: u32, bits: u32| (shift, (1 << bits) - 1);
        let (time, seq, machine) = (field(time, t), field(seq, s), field(machine, m));
        let taken = [time, seq, machine]
            .iter()
            .fold(0, |all, (shift, max)| all | max << shift);
        Self {
            meta: *meta,
            time,
            seq,
            machine,
            seq_bits: s,
            rest: !taken,
            expected: None,
        }
    }

    /// Machine ID and position.
    #[inline]
    fn decode(&mut self, id: u64) -> Result<(u64, u64), Flaw> {
        let field = |(shift, max): (u32, u64)| id >> shift & max;
        let rest = id & self.rest;
        let expected = match self.expected {
            Some(expected) => expected,
            None => *self.expected.insert(self.first(id)?),
        };
        if expected != rest {
            let text = format!("{id:#x} differs from the others in more than time and machine ID");
            return Err(Flaw::new(Fault::Unreadable, text));
        }
        Ok((
            field(self.machine),
            field(self.time) << self.seq_bits | field(self.seq),
        ))
    }

    /// The other fields of the first ID, which are the same for every service here.
    #[cold]
    fn first(&self, id: u64) -> Result<u64, Flaw> {
        match self.meta.unpack(id) {
            Ok(Id {
                version: 0,
                gen_method: 0,
                id_type,
                ..
            }) if id_type == self.meta.id_type() => Ok(id & self.rest),
            other => Err(Flaw::new(
                Fault::Unreadable,
                format!("{id:#x} is {other:?}"),
            )),
        }
    }
}
