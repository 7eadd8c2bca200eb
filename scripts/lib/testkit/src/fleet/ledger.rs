//! The checker: every position that a caller received, as intervals per machine ID. Finds positions
//! that repeat or are out of order.
#![allow(missing_docs, reason = "parts of tests")]

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use vesta_intf::{IdError, IdMeta, IdRun};

/// Maximum findings printed; all are counted.
const TOLD: usize = 10;

/// Consecutive positions of one machine ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    machine: u64,
    start: u64,
    /// Exclusive upper bound.
    end: u64,
}

impl Span {
    fn of_id(meta: &IdMeta, id: u64) -> Result<Self, IdError> {
        let parts = meta.unpack(id)?;
        let start = parts.time << meta.spec().seq_bits | parts.seq;
        Ok(Self {
            machine: parts.machine,
            start,
            end: start + 1,
        })
    }

    fn of_run(meta: &IdMeta, run: &IdRun) -> Result<Self, String> {
        let count = u64::from(run.count);
        let at = |index: u64| {
            let id = index
                .checked_mul(run.step)
                .and_then(|offset| run.first.checked_add(offset));
            Self::of_id(meta, id.ok_or("beyond 64 bits")?).map_err(|error| error.to_string())
        };
        let span = Self {
            end: at(0)?.start + count,
            ..at(0)?
        };
        // In between it is linear: the fields of a layout do not overlap.
        for index in [1, count.saturating_sub(1)] {
            let right = Self {
                start: span.start + index,
                end: span.start + index + 1,
                ..span
            };
            if count == 0 || (index < count && at(index)? != right) {
                return Err(format!("{run:?} is no run of neighbouring positions"));
            }
        }
        Ok(span)
    }
}

/// The IDs that one call received.
#[derive(Debug)]
pub enum Answer {
    Ids(Vec<u64>),
    Runs(Vec<IdRun>),
}

impl Answer {
    /// The positions, in the order of the answer.
    fn spans(&self, meta: &IdMeta) -> Result<Vec<Span>, String> {
        match self {
            Self::Runs(runs) => runs.iter().map(|run| Span::of_run(meta, run)).collect(),
            Self::Ids(ids) => {
                if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
                    return Err(format!("{} stands before {}", pair[0], pair[1]));
                }
                let mut spans: Vec<Span> = Vec::new();
                for id in ids {
                    let next = Span::of_id(meta, *id).map_err(|error| error.to_string())?;
                    match spans.last_mut() {
                        Some(last) if (last.machine, last.end) == (next.machine, next.start) => {
                            last.end = next.end;
                        }
                        _ => spans.push(next),
                    }
                }
                Ok(spans)
            }
        }
    }
}

/// Position per machine ID below which everything was received when a call began.
pub type Marks = BTreeMap<u64, u64>;

/// The receiver of an answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Receiver {
    /// Number assigned by [`Ledger::join`].
    pub process: usize,
    pub caller: usize,
    pub at: Duration,
}

/// Consecutive positions issued by one process.
#[derive(Debug, Clone, Copy)]
struct Taken {
    end: u64,
    by: Receiver,
    /// Time at which the last of them was received.
    until: Duration,
}

/// Everything received of one namespace.
#[derive(Debug)]
pub struct Ledger {
    meta: IdMeta,
    lines: HashMap<u64, BTreeMap<u64, Taken>>,
    processes: Vec<(String, Marks)>,
    /// IDs compared.
    pub ids: u64,
    /// Positions received again.
    pub duplicates: u64,
    /// Answers that do not follow what was received before the call.
    pub disorders: u64,
    /// Pairs of processes whose duplicates were printed.
    pairs: HashSet<[usize; 2]>,
    /// The first findings, of any kind.
    pub findings: Vec<String>,
}

impl Ledger {
    #[must_use]
    pub fn new(meta: IdMeta) -> Self {
        Self {
            meta,
            lines: HashMap::new(),
            processes: Vec::new(),
            ids: 0,
            duplicates: 0,
            disorders: 0,
            pairs: HashSet::new(),
            findings: Vec::new(),
        }
    }

    /// Adds a process, with a name for messages.
    pub fn join(&mut self, name: String) -> usize {
        self.processes.push((name, Marks::new()));
        self.processes.len() - 1
    }

    /// Machine IDs that were used.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.lines.len()
    }

    /// Intervals that are kept.
    #[must_use]
    pub fn intervals(&self) -> usize {
        self.lines.values().map(BTreeMap::len).sum()
    }

    /// The latest time, in ticks of the layout.
    #[must_use]
    pub fn latest(&self) -> u64 {
        let ends = self.lines.values().filter_map(BTreeMap::last_key_value);
        let last = ends.map(|(_, taken)| taken.end - 1).max();
        last.unwrap_or_default() >> self.meta.spec().seq_bits
    }

    /// Adds IDs in the order of their calls: each must be new, and greater than the last one of its machine ID. The IDs
    /// of one process are checked before those of the next with its machine ID.
    ///
    /// # Errors
    /// The first wrong ID, and its fault.
    pub fn check(&mut self, ids: &[u64]) -> Result<(), String> {
        for &id in ids {
            let span = Span::of_id(&self.meta, id).map_err(|error| error.to_string())?;
            let line = self.lines.entry(span.machine).or_default();
            let before = line.last_key_value().map_or(0, |(_, last)| last.end);
            let left = line.range(..=span.start).next_back();
            if left.is_some_and(|(_, taken)| taken.end > span.start) {
                return Err(format!("{id} twice"));
            }
            if span.start < before {
                return Err(format!(
                    "{id} after position {} of its machine ID",
                    before - 1
                ));
            }
            insert(line, span.start, span.end, Receiver::default());
            self.ids += 1;
        }
        Ok(())
    }

    /// The end of everything received from a process so far: a call that begins now must get later
    /// positions.
    #[must_use]
    pub fn marks(&self, process: usize) -> Marks {
        self.processes[process].1.clone()
    }

    /// Checks an answer against all others. `marks` is what was received before the call; it is raised by
    /// the answer.
    pub fn record(&mut self, by: Receiver, answer: &Answer, marks: &mut Marks) {
        let spans = match answer.spans(&self.meta) {
            Ok(spans) => spans,
            Err(error) => {
                self.disorders += 1;
                return self.find(format!("{}: malformed: {error}", self.name(by, by.at)));
            }
        };
        for span in spans {
            self.ids += span.end - span.start;
            let mark = marks.entry(span.machine).or_default();
            let before = *mark;
            *mark = span.end.max(before);
            if span.start < before {
                self.disorders += 1;
                let name = self.name(by, by.at);
                self.find(format!("{name}: {span:?} after positions up to {before}"));
            }
            let head = self.processes[by.process]
                .1
                .entry(span.machine)
                .or_default();
            *head = span.end.max(*head);
            self.take(by, span);
        }
    }

    /// Records another finding.
    pub fn find(&mut self, finding: String) {
        if self.findings.len() < TOLD {
            println!("FOUND: {finding}");
            self.findings.push(finding);
        }
    }

    fn name(&self, by: Receiver, until: Duration) -> String {
        let (process, _) = &self.processes[by.process];
        let [at, until] = [by.at, until].map(|time| time.as_secs_f64());
        format!(
            "caller {} of {process} at {at:.3} to {until:.3} s",
            by.caller
        )
    }

    fn take(&mut self, by: Receiver, span: Span) {
        let line = self.lines.entry(span.machine).or_default();
        let reaches_in = |(_, taken): &(&u64, &Taken)| taken.end > span.start;
        let first = line.range(..=span.start).next_back().filter(reaches_in);
        let from = first.map_or(span.start, |(start, _)| *start);
        let met: Vec<_> = line
            .range(from..span.end)
            .map(|(start, taken)| (*start, *taken))
            .collect();
        let mut at = span.start;
        for (start, taken) in &met {
            insert(line, at, *start, by);
            at = taken.end.min(span.end);
        }
        insert(line, at, span.end, by);
        for (start, taken) in met {
            let (start, end) = (start.max(span.start), taken.end.min(span.end));
            self.duplicates += end - start;
            if !self.pairs.insert([taken.by.process, by.process]) {
                continue;
            }
            let [first, again] = [self.name(taken.by, taken.until), self.name(by, by.at)];
            let machine = span.machine;
            self.find(format!(
                "DUPLICATE: positions {start}..{end} of machine ID {machine}: by {first}; again by {again}"
            ));
        }
    }
}

/// Adds free positions, merged with neighbours that the same process issued.
fn insert(line: &mut BTreeMap<u64, Taken>, mut start: u64, mut end: u64, by: Receiver) {
    if start >= end {
        return;
    }
    let mut taken = Taken {
        end,
        by,
        until: by.at,
    };
    let is_of = |taken: &Taken| taken.by.process == by.process;
    let left = line
        .range(..start)
        .next_back()
        .map(|(before, left)| (*before, *left));
    if let Some((before, left)) = left.filter(|(_, left)| left.end == start && is_of(left)) {
        (start, taken.by) = (before, left.by);
    }
    if let Some(right) = line.get(&end).copied().filter(is_of) {
        line.remove(&end);
        end = right.end;
        taken.until = taken.until.max(right.until);
    }
    line.insert(start, Taken { end, ..taken });
}
