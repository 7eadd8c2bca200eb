//! One history: what a seed makes happen, step by step.

mod faults;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vesta_service::{BuildError, ClaimError, Clock as _, IdError, LocalIdService, SequenceStart};

use super::dice::Dice;
use super::ledger::{Flaw, Ledger, Progress};
use super::node::Node;
use super::plan::{Class, NAMESPACES, Plan, Source};
use super::store::{Plant, Port, Shared};
use super::tally::Tally;
use super::time::{HOUR, HostClock, MILLI, SECOND, Time};

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) dice: Dice,
    pub(crate) time: Arc<Time>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) ledgers: Vec<Ledger>,
    pub(crate) tally: Tally,
    /// Of each namespace, whether it was wiped and no operator has acted since.
    pub(crate) wiped: [bool; 2],
    /// Whether a node refused for that reason.
    pub(crate) operator_called: [bool; 2],
    /// Since when weather and clocks are good, to stay so.
    pub(crate) calm_since: Option<u64>,
}

/// What came of a whole history.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) flaw: Option<Flaw>,
    pub(crate) tally: Tally,
    pub(crate) digest: u64,
    /// Whether the seed decides all of it.
    pub(crate) exactly: bool,
    pub(crate) trace: Vec<String>,
}

impl World {
    /// Plays one history, in folders of its own.
    pub(crate) fn play(seed: u64, plant: Option<Plant>, folder: &Path, traced: bool) -> Outcome {
        let mut dice = Dice::new(seed);
        let plan = Plan::new(plant, &mut dice);
        let mut world = Self::new(plan, dice, &folder.join(seed.to_string()), traced);
        world.time.note(|| format!("{:#?}", world.plan));
        let played = catch_unwind(AssertUnwindSafe(|| world.run()));
        let flaw = played.unwrap_or_else(|_| Err(Flaw::other("a panic"))).err();
        world.tally.add("seeds", 1);
        world.tally.merge(&world.shared.tally());
        let random = |node: &Node| node.plan.start != SequenceStart::Zero;
        let exactly = !world.nodes.iter().any(random);
        let digest = world.ledgers.iter().fold(world.time.now(), |all, ledger| all ^ ledger.digest);
        let (tally, trace) = (std::mem::take(&mut world.tally), world.time.trace());
        Outcome { flaw, tally, digest, exactly, trace }
    }

    /// Nobody runs yet. The folders lie below `folder`.
    pub(crate) fn new(plan: Plan, mut dice: Dice, folder: &Path, traced: bool) -> Self {
        let time = Time::starting(plan.start, traced);
        let store_dice = Dice::new(dice.next());
        let may_forget = plan.class == Class::MayForget;
        let shared = Shared::new(time.clone(), store_dice, may_forget, plan.plant);
        time.watch_for(plan.renew * 3 / 2);
        let nodes = plan.nodes.iter().enumerate().map(|(number, node)| Node {
            number,
            clock: HostClock::new(&time),
            folder: match node.remembers {
                true => folder.join(node.host.to_string()),
                false => "/dev/null/nowhere".into(),
            },
            port: Port::new(&shared, node.host, plan.timing),
            plan: node.clone(),
            service: None,
            paused: false,
            keeper_at: 0,
            progress: Progress::default(),
            started: false,
            torn: false,
        });
        let nodes = nodes.collect();
        let ledgers = NAMESPACES.iter().map(|_| Ledger::new(&plan.layout)).collect();
        Self {
            plan,
            dice,
            time,
            shared,
            nodes,
            ledgers,
            tally: Tally::default(),
            wiped: [false; 2],
            operator_called: [false; 2],
            calm_since: None,
        }
    }

    fn run(&mut self) -> Result<(), Flaw> {
        for node in 0..self.nodes.len() {
            if self.plan.class == Class::Wiped || self.dice.percent(80) {
                self.start(node)?;
            }
        }
        for _ in 0..self.plan.steps {
            if self.dice.percent(self.plan.trouble) {
                self.fault()?;
            } else if self.dice.percent(40) {
                let span = self.some_time();
                self.pass(span)?;
            }
            let node = self.dice.index(self.nodes.len());
            if self.nodes[node].service.is_none() {
                if self.dice.percent(50) {
                    self.start(node)?;
                }
            } else if self.nodes[node].paused {
                if self.dice.percent(30) {
                    self.wake(node)?;
                }
            } else {
                self.issue(node)?;
            }
            self.inspect()?;
        }
        self.end_well()
    }

    /// A length of time: from nothing to some windows, and now and then more.
    fn some_time(&mut self) -> u64 {
        let window = self.plan.window();
        let most = self.dice.weighed(&[
            (10, 0),
            (20, MILLI),
            (20, SECOND),
            (30, window / 2),
            (15, 3 * window),
            (4, self.plan.grace() + 2 * window),
            (1, 9 * HOUR),
        ]);
        if most == 0 { 0 } else { self.dice.within(most / 2..=most) }
    }

    /// Lets time pass. Keepers run when they are due; if it is very long, everybody sleeps.
    pub(crate) fn pass(&mut self, nanos: u64) -> Result<(), Flaw> {
        let until = self.time.now() + nanos;
        let asleep = nanos > 200 * self.plan.renew;
        if asleep {
            self.tally.add("sleeps of all", 1);
        }
        while let Some((number, at)) = self.next_keeper(until).filter(|_| !asleep) {
            self.time.advance(at.saturating_sub(self.time.now()));
            self.keep(number);
        }
        self.time.advance(until.saturating_sub(self.time.now()));
        self.shared.deliver(false);
        self.inspect()
    }

    /// Whose keeper is the next to run until then, and when.
    fn next_keeper(&self, until: u64) -> Option<(usize, u64)> {
        let awake = self.nodes.iter().filter(|node| node.service.is_some() && !node.paused);
        let next = awake.min_by_key(|node| node.keeper_at)?;
        (next.keeper_at <= until).then_some((next.number, next.keeper_at))
    }

    /// What the keeper's thread of a node would do now.
    pub(crate) fn keep(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let Some(service) = &node.service else { return };
        node.port.begin(self.dice.below(3));
        let pause = service.maintain();
        let renew = self.plan.renew;
        let next = match pause {
            // Between two machine IDs it says itself when to try again; mostly it is later.
            Some(pause) if pause >= Duration::from_millis(1) => {
                u64::try_from(pause.as_nanos()).expect("short") * self.dice.within(1..=20)
            }
            _ if node.port.failed() => renew / 10,
            _ => renew,
        };
        node.keeper_at = self.time.now() + next * self.dice.within(90..=110) / 100;
    }

    pub(crate) fn start(&mut self, number: usize) -> Result<(), Flaw> {
        let space = self.plan.nodes[number].space;
        let node = &self.nodes[number];
        let must_refuse = self.wiped[space] && !node.is_fixed();
        let unaware = must_refuse && !node.started;
        if unaware {
            return Ok(()); // an operator keeps newcomers away from a store that was wiped
        }
        self.look_at_clock(number);
        self.time.note(|| format!("node {number} starts"));
        let node = &mut self.nodes[number];
        let result = node.start(&self.plan, &self.shared);
        self.tally.add("starts", 1);
        match result {
            Ok(()) if must_refuse => Err(Flaw::other(format!(
                "node {number} started from a store that was wiped, although it remembers"
            ))),
            Ok(()) => {
                let machines = node.machines();
                self.time.note(|| format!("node {number} has machine IDs {machines:?}"));
                node.torn = false;
                node.keeper_at = self.time.now() + self.plan.renew;
                if self.dice.percent(60) { self.issue(number) } else { Ok(()) }
            }
            Err(error) => {
                self.time.note(|| format!("node {number} does not start: {error}"));
                self.tally.add(self.documented(number, &error)?, 1);
                if let BuildError::Claim(ClaimError::StoreRegressed { .. }) = error {
                    self.operator_called[space] = true;
                }
                Ok(())
            }
        }
    }

    /// The kind of an error at start, if it has a reason to be.
    fn documented(&self, number: usize, error: &BuildError) -> Result<&'static str, Flaw> {
        let node = &self.nodes[number];
        let forgets = self.plan.class != Class::Durable || self.plan.plant.is_some();
        let (wall, meta) = (node.clock.wall(), &self.plan.layout);
        let only = !matches!(node.plan.source, Source::Pool(_));
        let kind = match error {
            BuildError::Claim(claim) => match claim {
                ClaimError::Store { .. } if self.calm_since.is_none() => {
                    "starts refused: store away"
                }
                ClaimError::Exhausted { .. } => "starts refused: every machine ID in use",
                ClaimError::ClockBehind { .. } if only => "starts refused: clock behind",
                ClaimError::StoreRegressed { .. } if forgets => "starts refused: the store forgot",
                ClaimError::Time(IdError::Invalid { .. }) if wall < meta.spec().epoch => {
                    "starts refused: clock before the epoch"
                }
                ClaimError::Time(IdError::TimeExhausted) if only || wall >= meta.end() => {
                    "starts refused: end of the layout"
                }
                _ => return Err(Flaw::other(format!("node {number} at {wall}: {error}"))),
            },
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
        self.tally.add("clean stops", 1);
        let node = &mut self.nodes[number];
        let space = node.plan.space;
        self.shared.released(node.namespace());
        node.port.begin(2);
        node.service = None;
        let exact = self.plan.class == Class::Durable && self.plan.plant.is_none();
        for (machine, bound) in self.shared.released(NAMESPACES[space]) {
            let end = self.ledgers[space].end(machine);
            if end > bound && exact {
                let text =
                    format!("machine ID {machine} was used to {end:#x}, given back at {bound:#x}");
                return Err(Flaw::other(text));
            }
        }
        Ok(())
    }

    pub(crate) fn wake(&mut self, number: usize) -> Result<(), Flaw> {
        self.time.note(|| format!("node {number} goes on"));
        self.nodes[number].paused = false;
        self.issue(number) // first thing, before its keeper could look around
    }

    /// What must hold between any two steps.
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

/// Whether the service says that its store has forgotten something.
pub(crate) fn sees_that_it_forgot(service: &LocalIdService) -> bool {
    let says = |line: &vesta_service::MachineStatus| {
        line.not_ready_because.as_ref().is_some_and(|why| why.contains("has forgotten"))
    };
    service.machines().iter().any(says)
}
