//! Generation: every way to ask for IDs, and the errors it may end with.

use std::time::Duration;

use vesta_service::{ErrorKind, IdError, IdRun, IdService as _, LocalIdService, MachineStatus};

use super::ledger::{Flaw, Stretch};
use super::plan::NAMESPACES;
use super::time::SECOND;
use super::world::World;

/// The most that is asked for at once.
const BATCH: usize = 1500;

impl World {
    /// A node makes IDs, in one of all ways.
    pub(crate) fn generate(&mut self, number: usize) -> Result<(), Flaw> {
        match self.rng.below(10) {
            0..=2 => self.one_by_one(number),
            3..=4 => self.batches(number),
            _ => self.runs(number),
        }
    }

    fn one_by_one(&mut self, number: usize) -> Result<(), Flaw> {
        let wanted = self.rng.span(1500);
        let waits = self.rng.percent(50);
        self.with(number, "one by one", |service, take| {
            for _ in 0..wanted {
                let id = if waits { service.gen_id() } else { service.try_gen_id() };
                match id {
                    Ok(id) => take.id(id)?,
                    Err(error) => return Ok(Some(error)),
                }
            }
            Ok(None)
        })
    }

    fn batches(&mut self, number: usize) -> Result<(), Flaw> {
        let wanted = 1 + self.rng.index(BATCH);
        let waits = self.rng.percent(50);
        self.with(number, "in batches", |service, take| {
            let mut ids = [0; BATCH];
            let ids = &mut ids[..wanted];
            let made = match waits {
                true => service.gen_ids(ids).map(|()| wanted),
                false => service.try_gen_ids(ids),
            };
            match made {
                Ok(made) => {
                    if !ids[..made].is_sorted() {
                        return Err(Flaw::other("a batch does not ascend"));
                    }
                    ids[..made].iter().try_for_each(|id| take.id(*id))?;
                    Ok(None)
                }
                Err(error) => Ok(Some(error)),
            }
        })
    }

    fn runs(&mut self, number: usize) -> Result<(), Flaw> {
        let tick = self.plan.layout.spec().unit.millis() * 1_000_000;
        let ticks = if tick < SECOND { 20 } else { 4 };
        for _ in 0..self.rng.within(1..=ticks) {
            let want = match self.rng.percent(70) {
                true => u32::MAX,
                false => u32::try_from(1 + self.rng.span(1 << 20)).expect("fits"),
            };
            let mut ended = false;
            self.with(number, "in runs", |service, take| {
                // Until the tick is used up.
                for _ in 0..6 {
                    match service.try_gen_run(want) {
                        Ok(run) => take.run(&run)?,
                        Err(error) => {
                            ended = error.kind() != ErrorKind::SequenceUsedUp;
                            return Ok(Some(error));
                        }
                    }
                }
                Ok(None)
            })?;
            if ended {
                break;
            }
            self.pass(tick)?;
        }
        Ok(())
    }

    /// Has a node make IDs, takes them in, and judges the error at the end.
    fn with(
        &mut self,
        number: usize,
        how: &'static str,
        make: impl FnOnce(&LocalIdService, &mut Take<'_>) -> Result<Option<IdError>, Flaw>,
    ) -> Result<(), Flaw> {
        let node = &mut self.nodes[number];
        let Some(service) = &node.service else { return Ok(()) };
        node.wire.begin(1);
        let space = node.plan.space;
        let before = service.machines();
        let fixed = node.is_fixed() || self.plan.planted.is_some();
        let shared = &self.shared;
        let mut take = Take {
            ledger: &mut self.ledgers[space],
            progress: &mut node.progress,
            granted: &|machine| match fixed {
                true => u64::MAX,
                false => shared.granted(NAMESPACES[space], machine),
            },
            count: 0,
            used: Vec::new(),
            first: None,
            last: None,
        };
        let made = make(service, &mut take);
        let Take { count, used, first, last, .. } = take;
        self.time.note(|| match (first, last) {
            (Some(first), Some(last)) => format!(
                "node {number} makes {count} {how}: machine ID {}, {:#x} to machine ID {}, {:#x}",
                first.machine, first.start, last.machine, last.end
            ),
            _ => format!("node {number} makes none {how}"),
        });
        self.counts.add(if how == "in runs" { "IDs in runs" } else { "IDs one by one" }, count);
        let error = made?;
        let after = service.machines();
        let held = |machine: &u64| before.iter().chain(&after).any(|line| line.machine == *machine);
        // While it waited it may have had one, and lost it again.
        let rehomed = |lines: &[MachineStatus]| lines.iter().map(|l| l.rehomed_total).sum::<u64>();
        let passed_through = rehomed(&after) > rehomed(&before) + 1;
        if let Some(foreign) = used.iter().find(|machine| !held(machine) && !passed_through) {
            return Err(Flaw::other(format!("node {number} made IDs of machine ID {foreign}")));
        }
        if super::world::sees_that_it_forgot(service) {
            self.operator_called[space] = true;
        }
        let Some(error) = error else { return Ok(()) };
        self.time.note(|| format!("node {number}: {error}"));
        self.judge(number, &error)
    }

    /// Checks that an error is one that callers are told about, and says when to come back.
    fn judge(&mut self, number: usize, error: &IdError) -> Result<(), Flaw> {
        let tick = Duration::from_millis(self.plan.layout.spec().unit.millis());
        let (kind, when) = (error.kind(), error.retry_after());
        let what = match (kind, when) {
            (ErrorKind::SequenceUsedUp, Some(when))
                if when <= tick * 2 + Duration::from_secs(6) =>
            {
                "calls refused: sequence used up"
            }
            (ErrorKind::AwaitingLease, Some(when)) if when <= Duration::from_secs(1) => {
                "calls refused: awaiting the lease"
            }
            (ErrorKind::ClockBehind, Some(when)) if !when.is_zero() => {
                "calls refused: clock behind"
            }
            (ErrorKind::TimeExhausted, None) => "calls refused: end of the layout",
            _ => {
                return Err(Flaw::other(format!(
                    "node {number} must not say: {error} ({kind:?}, {when:?})"
                )));
            }
        };
        self.counts.add(what, 1);
        Ok(())
    }
}

/// Where IDs go.
struct Take<'a> {
    ledger: &'a mut super::ledger::Ledger,
    progress: &'a mut super::ledger::Progress,
    granted: &'a dyn Fn(u64) -> u64,
    count: u64,
    used: Vec<u64>,
    first: Option<Stretch>,
    last: Option<Stretch>,
}

impl Take<'_> {
    #[inline]
    fn id(&mut self, id: u64) -> Result<(), Flaw> {
        let stretch = self.ledger.id(id, self.progress, self.granted)?;
        self.note(stretch);
        Ok(())
    }

    fn run(&mut self, run: &IdRun) -> Result<(), Flaw> {
        let stretch = self.ledger.run(run, self.progress, self.granted)?;
        self.note(stretch);
        Ok(())
    }

    #[inline]
    fn note(&mut self, stretch: Stretch) {
        self.count += stretch.end - stretch.start;
        if self.last.is_none_or(|last| last.machine != stretch.machine)
            && !self.used.contains(&stretch.machine)
        {
            self.used.push(stretch.machine);
        }
        self.first.get_or_insert(stretch);
        self.last = Some(stretch);
    }
}
