//! One history, played step by step.

mod faults;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::clock::Clock as _;
use vesta_service::contract::SequenceStart;
use vesta_service::{BuildError, IdError, LocalIdService};
use vesta_testkit::Rng;

use super::counts::Counts;
use super::ledger::{Fault, Flaw, Ledger, Progress};
use super::node::Node;
use super::plan::{Class, NAMESPACES, Plan, Source};
use super::planted::{Answers, Planted};
use super::store::{Shared, Wire};
use super::time::{HOUR, HostClock, MILLI, SECOND, Time};

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) rng: Rng,
    pub(crate) time: Arc<Time>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) ledgers: Vec<Ledger>,
    pub(crate) counts: Counts,
    /// For each namespace: whether it was wiped and no operator has acted since.
    pub(crate) wiped: [bool; 2],
    /// For each namespace: whether a node refused for that reason.
    pub(crate) operator_called: [bool; 2],
    /// Since when network and clocks have been good for the rest of the history.
    pub(crate) faultless_since: Option<u64>,
}

/// The outcome of a whole history.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) flaw: Option<Flaw>,
    pub(crate) counts: Counts,
    pub(crate) digest: u64,
    /// True if the seed decides all of it.
    pub(crate) exactly: bool,
    pub(crate) trace: Vec<String>,
}

impl World {
    /// Plays one history, in its own folders.
    pub(crate) fn play(
        seed: u64,
        planted: Option<Planted>,
        folder: &Path,
        traced: bool,
    ) -> Outcome {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(planted, &mut rng);
        let mut world = Self::new(plan, rng, &folder.join(seed.to_string()), traced);
        world.time.note(|| format!("{:#?}", world.plan));
        let played = catch_unwind(AssertUnwindSafe(|| world.run()));
        let flaw = played.unwrap_or_else(|_| Err(Flaw::other("a panic"))).err();
        world.counts.add("seeds", 1);
        world.counts.merge(&world.shared.counts());
        let random = |node: &Node| node.plan.start != SequenceStart::Zero;
        let exactly = !world.nodes.iter().any(random);
        let digest = world
            .ledgers
            .iter()
            .fold(world.time.now(), |all, ledger| all ^ ledger.digest);
        let (counts, trace) = (std::mem::take(&mut world.counts), world.time.trace());
        Outcome {
            flaw,
            counts,
            digest,
            exactly,
            trace,
        }
    }

    /// No node is running yet. The folders are below `folder`.
    pub(crate) fn new(plan: Plan, mut rng: Rng, folder: &Path, traced: bool) -> Self {
        let time = Time::starting(plan.start, traced);
        let store_rng = Rng::new(rng.bits());
        let doubted = plan.class == Class::MayForget;
        let shared = Shared::new(time.clone(), store_rng, doubted, plan.planted);
        time.watch_for(plan.renew * 3 / 2);
        let nodes = plan.nodes.iter().enumerate().map(|(number, node)| Node {
            number,
            clock: HostClock::new(&time),
            folder: match node.remembers {
                true => folder.join(node.host.to_string()),
                false => "/dev/null/nowhere".into(),
            },
            wire: Wire::new(&shared, node.host, plan.timing),
            plan: node.clone(),
            service: None,
            paused: false,
            keeper_at: 0,
            progress: Progress::default(),
            answers: Answers::default(),
            started: false,
            torn: false,
        });
        let nodes = nodes.collect();
        let ledgers = NAMESPACES
            .iter()
            .map(|_| Ledger::new(&plan.layout))
            .collect();
        Self {
            plan,
            rng,
            time,
            shared,
            nodes,
            ledgers,
            counts: Counts::default(),
            wiped: [false; 2],
            operator_called: [false; 2],
            faultless_since: None,
        }
    }

    fn run(&mut self) -> Result<(), Flaw> {
        for node in 0..self.nodes.len() {
            if self.plan.class == Class::Wiped || self.rng.percent(80) {
                self.start(node)?;
            }
        }
        for _ in 0..self.plan.steps {
            if self.rng.percent(self.plan.trouble) {
                self.fault()?;
            } else if self.rng.percent(40) {
                let span = self.some_time();
                self.pass(span)?;
            }
            let node = self.rng.index(self.nodes.len());
            if self.nodes[node].service.is_none() {
                if self.rng.percent(50) {
                    self.start(node)?;
                }
            } else if self.nodes[node].paused {
                if self.rng.percent(30) {
                    self.wake(node)?;
                }
            } else {
                self.generate(node)?;
            }
            self.inspect()?;
        }
        self.end_well()
    }

    /// A duration: from zero to some windows, occasionally more.
    fn some_time(&mut self) -> u64 {
        let window = self.plan.window();
        let most = self.rng.weighed(&[
            (10, 0),
            (20, MILLI),
            (20, SECOND),
            (30, window / 2),
            (15, 3 * window),
            (4, self.plan.grace() + 2 * window),
            (1, 9 * HOUR),
        ]);
        if most == 0 {
            0
        } else {
            self.rng.within(most / 2..=most)
        }
    }

    /// Lets time pass. Keepers run when they are due; if the time is very long, all nodes sleep.
    pub(crate) fn pass(&mut self, nanos: u64) -> Result<(), Flaw> {
        let until = self.time.now() + nanos;
        let asleep = nanos > 200 * self.plan.renew;
        if asleep {
            self.counts.add("sleeps of all", 1);
        }
        while let Some((number, at)) = self.next_keeper(until).filter(|_| !asleep) {
            self.time.advance(at.saturating_sub(self.time.now()));
            self.keep(number);
        }
        self.time.advance(until.saturating_sub(self.time.now()));
        self.shared.deliver(false);
        self.inspect()
    }

    /// The node whose keeper runs next until then, and when.
    fn next_keeper(&self, until: u64) -> Option<(usize, u64)> {
        let awake = self
            .nodes
            .iter()
            .filter(|node| node.service.is_some() && !node.paused);
        let next = awake.min_by_key(|node| node.keeper_at)?;
        (next.keeper_at <= until).then_some((next.number, next.keeper_at))
    }

    /// Does what the thread of a node's keeper would do now.
    pub(crate) fn keep(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let Some(service) = &node.service else { return };
        node.wire.begin(self.rng.below(3));
        let pause = service.maintain();
        let renew = self.plan.renew;
        let next = match pause {
            // Between two machine IDs the keeper returns its own retry delay; usually the next run is later.
            Some(pause) if pause >= Duration::from_millis(1) => {
                u64::try_from(pause.as_nanos()).expect("short") * self.rng.within(1..=20)
            }
            _ if node.wire.failed() => renew / 10,
            _ => renew,
        };
        node.keeper_at = self.time.now() + next * self.rng.within(90..=110) / 100;
    }

    pub(crate) fn start(&mut self, number: usize) -> Result<(), Flaw> {
        let space = self.plan.nodes[number].space;
        let node = &self.nodes[number];
        let must_refuse = self.wiped[space] && !node.is_fixed();
        let unaware = must_refuse && !node.started;
        if unaware {
            return Ok(()); // an operator keeps new nodes away from a store that was wiped
        }
        self.look_at_clock(number);
        self.time.note(|| format!("node {number} starts"));
        let node = &mut self.nodes[number];
        let result = node.start(&self.plan, &self.shared);
        self.counts.add("starts", 1);
        match result {
            Ok(()) if must_refuse => Err(Flaw::other(format!(
                "node {number} started from a store that was wiped, although it remembers"
            ))),
            Ok(()) => {
                let machines = node.machines();
                self.time
                    .note(|| format!("node {number} has machine IDs {machines:?}"));
                node.torn = false;
                node.keeper_at = self.time.now() + self.plan.renew;
                if self.rng.percent(60) {
                    self.generate(number)
                } else {
                    Ok(())
                }
            }
            Err(error) => {
                self.time
                    .note(|| format!("node {number} does not start: {error}"));
                self.counts.add(self.documented(number, &error)?, 1);
                if matches!(
                    error,
                    BuildError::StoreRegressed { .. } | BuildError::RecordLost { .. }
                ) {
                    self.operator_called[space] = true;
                }
                Ok(())
            }
        }
    }

    /// The kind of a start error, if it is justified.
    fn documented(&self, number: usize, error: &BuildError) -> Result<&'static str, Flaw> {
        let node = &self.nodes[number];
        let forgets = self.plan.class != Class::Durable || !self.plan.is_checked();
        let (wall, meta) = (node.clock.wall(), &self.plan.layout);
        let only = !matches!(node.plan.source, Source::Pool(_));
        let ends_soon = self.plan.ends_soon;
        let kind = match error {
            BuildError::Store { .. } if self.faultless_since.is_none() => {
                "starts refused: store away"
            }
            // A late request reached other entries of its namespace.
            BuildError::Store { .. } if self.shared.lost_its_namespace(node.namespace()) => {
                "starts refused: namespace lost"
            }
            BuildError::Exhausted { .. } => "starts refused: every machine ID in use",
            BuildError::FloorAhead { .. } => "starts refused: the floor lies ahead",
            BuildError::ClockBehind { .. } if only => "starts refused: clock behind",
            BuildError::StoreRegressed { .. } if forgets => "starts refused: the store forgot",
            BuildError::RecordLost { .. } if forgets => "starts refused: record lost",
            BuildError::Time(IdError::Invalid { .. }) if wall < meta.spec().epoch => {
                "starts refused: clock before the epoch"
            }
            BuildError::Time(IdError::TimeExhausted) if only || ends_soon || wall >= meta.end() => {
                "starts refused: end of the layout"
            }
            BuildError::Setting(IdError::Invalid { field: "clock", .. })
                if wall < meta.spec().epoch =>
            {
                "starts refused: clock before the epoch"
            }
            BuildError::Setting(IdError::TimeExhausted) if wall >= meta.end() => {
                "starts refused: end of the layout"
            }
            _ => return Err(Flaw::other(format!("node {number} at {wall}: {error}"))),
        };
        Ok(kind)
    }

    pub(crate) fn stop(&mut self, number: usize) -> Result<(), Flaw> {
        self.time.note(|| format!("node {number} stops"));
        self.counts.add("clean stops", 1);
        let asks_again = self.rng.percent(50);
        let node = &mut self.nodes[number];
        let space = node.plan.space;
        self.shared.released(node.namespace());
        node.wire.begin(2);
        if let Some(service) = node.service.as_ref().filter(|_| asks_again) {
            service.close();
            match node.answers.try_gen_run(service, 1) {
                Err(IdError::Sealed { reason }) if !reason.is_empty() => {}
                answer => {
                    let text = format!("node {number} was closed, and answers {answer:?}");
                    return Err(Flaw::new(Fault::AfterTheEnd, text));
                }
            }
        }
        let lost = node
            .service
            .as_ref()
            .map_or(0, |service| service.status().positions_lost_total);
        node.service = None;
        if self.plan.class != Class::Durable || !self.plan.is_checked() {
            return Ok(());
        }
        let sender = node.wire.sender;
        let released = self.shared.released(NAMESPACES[space]);
        // An earlier release by another process may arrive only now.
        for (_, machine, bound) in released.into_iter().filter(|release| release.0 == sender) {
            let (end, mine) = (
                self.ledgers[space].end(machine),
                node.progress.next(machine),
            );
            let base = self
                .shared
                .window(sender, NAMESPACES[space], machine, u64::MAX)
                .base;
            // The first position that was not issued, if any was issued.
            let exact = mine <= base || mine == bound || lost > 0 || node.progress.lossy;
            if end > bound || !exact {
                let text =
                    format!("machine ID {machine} was used to {end:#x}, given back at {bound:#x}");
                return Err(Flaw::new(Fault::NotReturned, text));
            }
        }
        Ok(())
    }

    pub(crate) fn wake(&mut self, number: usize) -> Result<(), Flaw> {
        self.time.note(|| format!("node {number} goes on"));
        self.nodes[number].paused = false;
        self.generate(number) // the first action, before its keeper can check anything
    }

    /// Checks the invariants between two steps.
    fn inspect(&mut self) -> Result<(), Flaw> {
        if let Some(flaw) = self.shared.flaw() {
            return Err(Flaw::other(flaw));
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.crash();
            node.lose_folder();
        }
    }
}

/// True if the service reports that its store has forgotten something.
pub(crate) fn sees_that_it_forgot(service: &LocalIdService) -> bool {
    let says = |line: &vesta_service::options::MachineStatus| {
        line.not_ready_because
            .as_ref()
            .is_some_and(|why| why.contains("has forgotten"))
    };
    service.machines().iter().any(says)
}
