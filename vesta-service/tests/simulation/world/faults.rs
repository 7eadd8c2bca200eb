//! Faults of nodes, network and store.

use super::World;
use crate::ledger::Flaw;
use crate::plan::{Class, NAMESPACES};
use crate::planted::Planted;
use crate::store::Weather;
use crate::time::{MINUTE, SECOND};

impl World {
    /// A running node to be the victim, if any.
    fn victim(&mut self) -> Option<usize> {
        let running: Vec<_> = self
            .nodes
            .iter()
            .filter(|node| node.service.is_some())
            .collect();
        if running.is_empty() {
            None
        } else {
            Some(running[self.rng.index(running.len())].number)
        }
    }

    pub(super) fn fault(&mut self) -> Result<(), Flaw> {
        match self.rng.below(20) {
            0..=4 => self.clock_fault(),
            5..=6 => {
                let Some(number) = self.victim() else {
                    return Ok(());
                };
                self.time.note(|| format!("node {number} is paused"));
                self.counts.add("pauses", 1);
                self.nodes[number].paused = true;
            }
            7..=9 => {
                let Some(number) = self.victim() else {
                    return Ok(());
                };
                self.crash(number)?;
                if self.rng.percent(60) {
                    self.start(number)?;
                }
            }
            10..=11 => {
                let Some(number) = self.victim() else {
                    return Ok(());
                };
                if !self.nodes[number].paused {
                    self.stop(number)?;
                    if self.rng.percent(60) {
                        self.start(number)?;
                    }
                }
            }
            12..=14 => self.weather(),
            15 if self.rng.percent(10) => {
                let Some(number) = self.victim() else {
                    return Ok(());
                };
                self.time
                    .note(|| format!("node {number} is refused by the store, for good"));
                self.counts.add("nodes refused for good", 1);
                self.nodes[number].wire.refuse_for_good();
            }
            15 => {
                let number = self.rng.index(self.nodes.len());
                let is = self.rng.percent(50);
                self.time
                    .note(|| format!("node {number} is cut off from the store: {is}"));
                self.counts.add("partitions", u64::from(is));
                self.nodes[number].wire.cut_off(is);
            }
            16..=17 => {
                let space = self.rng.index(2);
                let machine = self.rng.below(12);
                if self.shared.steal(NAMESPACES[space], machine) {
                    self.time
                        .note(|| format!("machine ID {machine} is taken over by a stranger"));
                    self.counts.add("forced takeovers", 1);
                }
            }
            _ => self.forget()?,
        }
        Ok(())
    }

    pub(crate) fn crash(&mut self, number: usize) -> Result<(), Flaw> {
        self.time.note(|| format!("node {number} crashes"));
        self.counts.add("crashes", 1);
        let node = &mut self.nodes[number];
        if self.plan.planted == Some(Planted::StaleState) {
            let before = node.state_file();
            self.time.advance(self.plan.renew);
            self.keep(number);
            self.generate(number)?;
            self.nodes[number].crash();
            crate::node::write(before);
            return Ok(());
        }
        let node = &mut self.nodes[number];
        node.crash();
        let shared = self
            .nodes
            .iter()
            .filter(|n| n.plan.host == self.nodes[number].plan.host);
        let alone = shared.count() == 1;
        let node = &mut self.nodes[number];
        if self.plan.class != Class::Wiped && !node.is_fixed() && alone && self.rng.percent(40) {
            self.time.note(|| "and its host remembers nothing".into());
            self.counts.add("state directorys lost", 1);
            node.lose_folder();
        } else if self.plan.class == Class::Durable && !node.torn && self.rng.percent(10) {
            node.torn = alone;
            if alone {
                let torn = node.tear(&mut self.rng);
                self.time
                    .note(|| format!("and {torn} state files are damaged in one half"));
                self.counts.add("state files torn", torn as u64);
            }
        }
        Ok(())
    }

    fn weather(&mut self) {
        let now = self.time.now();
        let rng = &mut self.rng;
        let mut some = |chance, of_hundred: &[u64]| match rng.percent(chance) {
            true => rng.pick(of_hundred),
            false => 0,
        };
        let mut weather = Weather {
            down_until: 0,
            refused: some(40, &[5, 50]),
            reply_lost: some(40, &[5, 30, 90]),
            late: some(40, &[5, 30, 90]),
            twice: some(30, &[10, 50]),
            slow: some(30, &[20, 80]),
            stale: some(40, &[30, 90]),
        };
        if rng.percent(25) {
            weather.down_until = now + rng.span(30 * MINUTE);
            self.counts.add("outages", 1);
        }
        if rng.percent(30) {
            weather = Weather::default();
        }
        self.time.note(|| format!("{weather:?}"));
        self.shared.weather(weather);
    }

    /// An owner's clock is stepped ahead after its claim. The owner reserves and issues, and has crashed
    /// when the store forgets that. Returns the size of the step.
    fn lose_a_holder_that_is_ahead(&mut self) -> Result<u64, Flaw> {
        let Some(number) = self.victim().filter(|number| !self.nodes[*number].paused) else {
            return Ok(0);
        };
        let by = self.rng.within(3 * SECOND..=MINUTE);
        self.step(number, i64::try_from(by).expect("minutes"));
        for _ in 0..15 {
            self.time.advance(SECOND);
            self.keep(number);
            self.generate(number)?;
        }
        self.counts.add("holders ahead of the store lost", 1);
        self.crash(number)?;
        Ok(by)
    }

    fn forget(&mut self) -> Result<(), Flaw> {
        let space = self.rng.index(2);
        let namespace = NAMESPACES[space];
        match self.plan.class {
            Class::Durable => {}
            Class::MayForget => {
                let mut span = self.rng.span(20 * MINUTE);
                let (before, mut ahead) = (self.time.now(), 0);
                if self.rng.percent(50) {
                    ahead = self.lose_a_holder_that_is_ahead()?;
                    span = self.time.now() - before + 1;
                }
                let undone = self.shared.roll_back(namespace, span);
                self.time
                    .note(|| format!("the store forgets its last {undone} changes"));
                self.counts
                    .add("stores that lost changes", u64::from(undone > 0));
                // The other owners reach its old position.
                for _ in 0..if ahead > 0 { 20 } else { 0 } {
                    self.pass(ahead / 10)?;
                    let number = self.rng.index(self.nodes.len());
                    match &self.nodes[number] {
                        node if node.service.is_none() => self.start(number)?,
                        node if node.paused => {}
                        _ => self.generate(number)?,
                    }
                }
            }
            Class::Wiped => {
                let users = self
                    .nodes
                    .iter()
                    .filter(|n| n.plan.space == space && !n.is_fixed());
                if users.clone().count() > 0 && users.clone().all(|node| node.started) {
                    self.shared.wipe(namespace);
                    self.time
                        .note(|| format!("the store forgets everything about {namespace}"));
                    self.counts.add("stores wiped", 1);
                    self.wiped[space] = true;
                }
            }
        }
        if self.operator_called[space] && self.rng.percent(50) {
            self.operate(space)?;
        }
        Ok(())
    }
}
