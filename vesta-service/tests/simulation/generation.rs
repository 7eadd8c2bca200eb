//! Generation: every way to request IDs, and the errors that may occur.

use vesta_service::clock::{Clock as _, ClockKind};
use vesta_service::contract::{IdRun, UnixMillis};
use vesta_service::options::MachineStatus;
use vesta_service::{ErrorKind, IdError, LocalIdService};

use super::ledger::{Fault, Flaw, Ledger, Progress, Stretch};
use super::plan::{NAMESPACES, Plan};
use super::planted::Answers;
use super::time::{COARSE_MILLIS, HostClock, SECOND};
use super::world::World;

/// Maximum request size.
const BATCH: usize = 1500;

/// Maximum lead of issued time over the wall clock.
pub(super) const LEAD_MILLIS: u64 = 5_000;

impl World {
    /// A node generates IDs, in one of all ways.
    pub(crate) fn generate(&mut self, number: usize) -> Result<(), Flaw> {
        match self.rng.below(12) {
            0..=3 => self.one_by_one(number),
            4..=5 => self.batches(number),
            6 => self.retry(number),
            _ => self.runs(number),
        }
    }

    fn one_by_one(&mut self, number: usize) -> Result<(), Flaw> {
        let wanted = self.rng.span(2600);
        let waits = self.rng.percent(50);
        // The other nodes stand still meanwhile.
        let (time, until) = (self.time.clone(), self.time.now() + 20 * SECOND);
        let refused = self.with(number, "one by one", waits, |service, take| {
            for _ in (0..wanted).take_while(|_| time.now() < until) {
                let id = if waits {
                    service.gen_id()
                } else {
                    service.try_gen_id()
                };
                match id {
                    Ok(id) => take.id(id)?,
                    Err(error) => return Ok(Some(error)),
                }
            }
            Ok(None)
        });
        refused.map(drop)
    }

    fn batches(&mut self, number: usize) -> Result<(), Flaw> {
        let wanted = 1 + self.rng.index(BATCH);
        let waits = self.rng.percent(50);
        let refused = self.with(number, "in batches", waits, |service, take| {
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
        });
        // A failed batch gives its positions back, but it may have entered another tick.
        let failed = refused?.is_some();
        self.nodes[number].progress.lossy |= waits && failed;
        Ok(())
    }

    fn runs(&mut self, number: usize) -> Result<(), Flaw> {
        let tick = self.plan.layout.spec().unit.millis() * 1_000_000;
        let ticks = if tick < SECOND { 20 } else { 4 };
        for _ in 0..self.rng.within(1..=ticks) {
            let want = match self.rng.percent(70) {
                true => u32::MAX,
                false => u32::try_from(1 + self.rng.span(1 << 20)).expect("fits"),
            };
            let refused = self.with(number, "in runs", false, |service, take| {
                // Until the tick is used up.
                for _ in 0..6 {
                    match take.answers.try_gen_run(service, want) {
                        Ok(run) => take.run(&run, want)?,
                        Err(error) => return Ok(Some(error)),
                    }
                }
                Ok(None)
            })?;
            if refused.is_some_and(|error| error.kind() != ErrorKind::SequenceUsedUp) {
                break;
            }
            self.pass(tick)?;
        }
        Ok(())
    }

    /// Makes a node generate IDs, records them, and judges the final error.
    pub(super) fn with(
        &mut self,
        number: usize,
        how: &'static str,
        waits: bool,
        make: impl FnOnce(&LocalIdService, &mut Take<'_>) -> Result<Option<IdError>, Flaw>,
    ) -> Result<Option<IdError>, Flaw> {
        let checked = self.plan.is_checked();
        let of_the_store = checked && self.nodes[number].is_of_the_store();
        let node = &mut self.nodes[number];
        let Some(service) = &node.service else {
            return Ok(None);
        };
        node.wire.begin(1);
        node.progress.forget_windows();
        let space = node.plan.space;
        let before = service.machines();
        let wall = node.clock.wall();
        let lags = if node.plan.clock == ClockKind::Coarse {
            COARSE_MILLIS
        } else {
            0
        };
        let not_before = self.plan.tick(UnixMillis(wall.0.saturating_sub(lags)));
        let ahead = LEAD_MILLIS + node.plan.borrow * self.plan.layout.spec().unit.millis();
        let (shared, sender) = (&self.shared, node.wire.sender);
        let mut take = Take {
            ledger: &mut self.ledgers[space],
            progress: &mut node.progress,
            answers: &mut node.answers,
            window: &|Stretch { machine, start, .. }| match of_the_store {
                true => shared
                    .window(sender, NAMESPACES[space], machine, start)
                    .positions(),
                false => (0, u64::MAX),
            },
            plan: &self.plan,
            clock: &node.clock,
            ahead,
            latest: if checked { 0 } else { u64::MAX },
            earliest: u64::MAX,
            count: 0,
            used: Vec::new(),
            first: None,
            last: None,
        };
        let made = make(service, &mut take);
        let Take {
            count,
            used,
            first,
            last,
            earliest,
            ..
        } = take;
        self.time.note(|| match (first, last) {
            (Some(first), Some(last)) => format!(
                "node {number} makes {count} {how}: machine ID {}, {:#x} to machine ID {}, {:#x}",
                first.machine, first.start, last.machine, last.end
            ),
            _ => format!("node {number} makes none {how}"),
        });
        let kind = if ["in runs", "at once"].contains(&how) {
            "IDs in runs"
        } else {
            "IDs one by one"
        };
        self.counts.add(kind, count);
        let error = made?;
        if !waits && checked && earliest < not_before && !service.status().clock_suspect {
            let text = format!("node {number} made an ID of tick {earliest} at {wall}");
            return Err(Flaw::new(Fault::WrongTime, text));
        }
        let after = service.machines();
        let held = |machine: &u64| {
            before
                .iter()
                .chain(&after)
                .any(|line| line.machine == *machine)
        };
        // While it waited it may have found a machine ID and lost it again.
        let rehomed = |lines: &[MachineStatus]| lines.iter().map(|l| l.rehomed_total).sum::<u64>();
        let passed_through = rehomed(&after) > rehomed(&before) + 1;
        if let Some(foreign) = used
            .iter()
            .find(|machine| !held(machine) && !passed_through)
        {
            return Err(Flaw::other(format!(
                "node {number} made IDs of machine ID {foreign}"
            )));
        }
        if super::world::sees_that_it_forgot(service) {
            self.operator_called[space] = true;
        }
        if let Some(error) = &error {
            self.time.note(|| format!("node {number}: {error}"));
            self.judge(number, error, how)?;
        }
        Ok(error)
    }
}

/// Passes IDs to the ledger.
pub(super) struct Take<'a> {
    ledger: &'a mut Ledger,
    progress: &'a mut Progress,
    pub(super) answers: &'a mut Answers,
    window: &'a dyn Fn(Stretch) -> (u64, u64),
    plan: &'a Plan,
    clock: &'a HostClock,
    /// Maximum lead over the clock, in milliseconds.
    ahead: u64,
    /// The last tick that IDs may show, according to the clock readings so far.
    latest: u64,
    /// The first tick that an ID showed.
    earliest: u64,
    count: u64,
    used: Vec<u64>,
    first: Option<Stretch>,
    last: Option<Stretch>,
}

impl Take<'_> {
    #[inline]
    fn id(&mut self, id: u64) -> Result<(), Flaw> {
        let stretch = self.ledger.id(id, self.progress, self.window)?;
        self.note(stretch)
    }

    pub(super) fn run(&mut self, run: &IdRun, want: u32) -> Result<(), Flaw> {
        if run.count == 0 || run.count > want {
            return Err(Flaw::other(format!("{run:?} for {want}")));
        }
        let stretch = self.ledger.run(run, self.progress, self.window)?;
        self.note(stretch)
    }

    #[inline]
    fn note(&mut self, stretch: Stretch) -> Result<(), Flaw> {
        let seq_bits = self.plan.layout.spec().seq_bits;
        let tick = (stretch.end - 1) >> seq_bits;
        self.earliest = self.earliest.min(stretch.start >> seq_bits);
        if tick > self.latest {
            let wall = self.clock.wall();
            self.latest = self.plan.tick(UnixMillis(wall.0 + self.ahead));
            if tick > self.latest {
                let text = format!("{stretch:x?} shows tick {tick} at {wall}");
                return Err(Flaw::new(Fault::WrongTime, text));
            }
        }
        self.count += stretch.end - stretch.start;
        if self.last.is_none_or(|last| last.machine != stretch.machine)
            && !self.used.contains(&stretch.machine)
        {
            self.used.push(stretch.machine);
        }
        self.first.get_or_insert(stretch);
        self.last = Some(stretch);
        Ok(())
    }
}
