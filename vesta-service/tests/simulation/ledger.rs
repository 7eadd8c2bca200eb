//! The checker: every position that was issued, as intervals, and the rules they must keep.

use std::collections::BTreeMap;
use std::fmt;

use vesta_intf::FieldOrder::{MachineTimeSeq, TimeMachineSeq, TimeSeqMachine};
use vesta_service::{IdMeta, IdRun};

/// The rule that an ID breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// It was issued before.
    Repeated,
    /// Its line went back, or stood still.
    NotAscending,
    /// Nobody granted it.
    NotGranted,
    /// It does not say who made it, or when.
    Unreadable,
    /// Anything that is not about an ID.
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
        Self { fault: Fault::Other, text: text.into() }
    }
}

/// Positions `start..end` of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) machine: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The position that each line of one process has reached.
#[derive(Debug, Default)]
pub(crate) struct Progress(Vec<(u64, u64)>);

/// All that one namespace issued.
#[derive(Debug)]
pub(crate) struct Ledger {
    decoder: Decoder,
    lines: BTreeMap<u64, Line>,
    /// The line that was used last.
    open: (u64, Line),
    pub(crate) issued: u64,
    /// Mixed from every ID in the order they came: two histories with the same one are the same.
    pub(crate) digest: u64,
}

#[derive(Debug, Default)]
struct Line {
    /// Sorted, disjoint, not adjacent.
    intervals: Vec<(u64, u64)>,
    /// Up to where it is known to be granted.
    granted: u64,
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

    /// Takes an ID in.
    #[inline]
    pub(crate) fn id(
        &mut self,
        id: u64,
        progress: &mut Progress,
        granted: impl FnOnce(u64) -> u64,
    ) -> Result<Stretch, Flaw> {
        let (machine, start) = self.decoder.decode(id)?;
        self.stretch(Stretch { machine, start, end: start + 1 }, progress, granted)
    }

    /// Takes a run in.
    pub(crate) fn run(
        &mut self,
        run: &IdRun,
        progress: &mut Progress,
        granted: impl FnOnce(u64) -> u64,
    ) -> Result<Stretch, Flaw> {
        let count = u64::from(run.count);
        let last = run.first + run.step * (count - 1);
        let (machine, start) = self.decoder.decode(run.first)?;
        let (same, end) = self.decoder.decode(last)?;
        if machine != same || end.checked_sub(start) != Some(count - 1) {
            let text = format!("{run:?} is not a run of machine ID {machine}");
            return Err(Flaw { fault: Fault::Unreadable, text });
        }
        self.stretch(Stretch { machine, start, end: end + 1 }, progress, granted)
    }

    #[inline]
    fn stretch(
        &mut self,
        new: Stretch,
        progress: &mut Progress,
        granted: impl FnOnce(u64) -> u64,
    ) -> Result<Stretch, Flaw> {
        let Stretch { machine, start, end } = new;
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
        if end > line.granted {
            line.granted = granted(machine);
            if end > line.granted {
                return flaw(Fault::NotGranted, format!("granted to {:#x}", line.granted));
            }
        }
        let reached = progress.of(machine);
        if start < *reached {
            let what = format!("this process was at {reached:#x} already");
            return flaw(Fault::NotAscending, what);
        }
        *reached = end;
        if let Err((from, to)) = line.add(start, end) {
            return flaw(Fault::Repeated, format!("{from:#x}..{to:#x} was issued before"));
        }
        self.issued += end - start;
        self.digest =
            (self.digest ^ start ^ machine << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ end;
        Ok(new)
    }

    /// One past the highest position that was issued with this machine ID.
    pub(crate) fn end(&self, machine: u64) -> u64 {
        let line =
            if self.open.0 == machine { Some(&self.open.1) } else { self.lines.get(&machine) };
        line.and_then(|line| line.intervals.last()).map_or(0, |(_, end)| *end)
    }
}

impl Line {
    /// Adds an interval, or says which one it overlaps.
    #[inline]
    fn add(&mut self, start: u64, end: u64) -> Result<(), (u64, u64)> {
        match self.intervals.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            Some(last) if last.1 > start => return self.insert(start, end),
            _ => self.intervals.push((start, end)),
        }
        Ok(())
    }

    /// Adds an interval that is not the last: of an owner that slept.
    #[cold]
    fn insert(&mut self, start: u64, end: u64) -> Result<(), (u64, u64)> {
        let at = self.intervals.partition_point(|interval| interval.1 <= start);
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
    #[inline]
    fn of(&mut self, machine: u64) -> &mut u64 {
        let at = match self.0.iter().position(|(m, _)| *m == machine) {
            Some(at) => at,
            None => {
                self.0.push((machine, 0));
                self.0.len() - 1
            }
        };
        &mut self.0[at].1
    }
}

/// Takes IDs apart, in its own way.
#[derive(Debug)]
struct Decoder {
    time: (u32, u64),
    seq: (u32, u64),
    machine: (u32, u64),
    seq_bits: u32,
    /// The bits of all other fields: the same in every ID.
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
        let taken = [time, seq, machine].iter().fold(0, |all, (shift, max)| all | max << shift);
        Self { time, seq, machine, seq_bits: s, rest: !taken, expected: None }
    }

    /// Machine ID and position.
    #[inline]
    fn decode(&mut self, id: u64) -> Result<(u64, u64), Flaw> {
        let field = |(shift, max): (u32, u64)| id >> shift & max;
        let rest = id & self.rest;
        if *self.expected.get_or_insert(rest) != rest {
            let text = format!("{id:#x} differs from the others in more than time and machine ID");
            return Err(Flaw { fault: Fault::Unreadable, text });
        }
        Ok((field(self.machine), field(self.time) << self.seq_bits | field(self.seq)))
    }
}
