//! What goes wrong, but for clocks.

use super::World;
use crate::ledger::Flaw;
use crate::plan::{Class, NAMESPACES};
use crate::store::{Plant, Weather};
use crate::time::MINUTE;

impl World {
    /// The node that is to suffer, if there is one that runs.
    fn victim(&mut self) -> Option<usize> {
        let running: Vec<_> = self.nodes.iter().filter(|node| node.service.is_some()).collect();
        if running.is_empty() { None } else { Some(running[self.dice.index(running.len())].number) }
    }

    pub(super) fn fault(&mut self) -> Result<(), Flaw> {
        match self.dice.below(20) {
            0..=4 => self.clock_fault(),
            5..=6 => {
                let Some(number) = self.victim() else { return Ok(()) };
                self.time.note(|| format!("node {number} is paused"));
                self.tally.add("pauses", 1);
                self.nodes[number].paused = true;
            }
            7..=9 => {
                let Some(number) = self.victim() else { return Ok(()) };
                self.crash(number)?;
                if self.dice.percent(60) {
                    self.start(number)?;
                }
            }
            10..=11 => {
                let Some(number) = self.victim() else { return Ok(()) };
                if !self.nodes[number].paused {
                    self.stop(number)?;
                    if self.dice.percent(60) {
                        self.start(number)?;
                    }
                }
            }
            12..=14 => self.weather(),
            15 => {
                let number = self.dice.index(self.nodes.len());
                let is = self.dice.percent(50);
                self.time.note(|| format!("node {number} is cut off from the store: {is}"));
                self.tally.add("partitions", u64::from(is));
                self.nodes[number].port.cut_off(is);
            }
            16..=17 => {
                let space = self.dice.index(2);
                let machine = self.dice.below(12);
                if self.shared.steal(NAMESPACES[space], machine) {
                    self.time.note(|| format!("machine ID {machine} is taken over by a stranger"));
                    self.tally.add("forced takeovers", 1);
                }
            }
            _ => self.forget()?,
        }
        Ok(())
    }

    pub(crate) fn crash(&mut self, number: usize) -> Result<(), Flaw> {
        self.time.note(|| format!("node {number} crashes"));
        self.tally.add("crashes", 1);
        let node = &mut self.nodes[number];
        if self.plan.plant == Some(Plant::StaleState) {
            let before = node.state_file();
            self.time.advance(self.plan.renew);
            self.keep(number);
            self.issue(number)?;
            self.nodes[number].crash();
            crate::node::write(before);
            return Ok(());
        }
        let node = &mut self.nodes[number];
        node.crash();
        let shared = self.nodes.iter().filter(|n| n.plan.host == self.nodes[number].plan.host);
        let alone = shared.count() == 1;
        let node = &mut self.nodes[number];
        if self.plan.class != Class::Wiped && !node.is_fixed() && alone && self.dice.percent(40) {
            self.time.note(|| "and its host remembers nothing".into());
            self.tally.add("state folders lost", 1);
            node.lose_folder();
        } else if self.plan.class == Class::Durable && !node.torn && self.dice.percent(10) {
            node.torn = alone;
            if alone {
                let torn = node.tear(&mut self.dice);
                self.time.note(|| format!("and {torn} state files are damaged in one half"));
                self.tally.add("state files torn", torn as u64);
            }
        }
        Ok(())
    }

    fn weather(&mut self) {
        let now = self.time.now();
        let dice = &mut self.dice;
        let mut some = |chance, of_hundred: &[u64]| match dice.percent(chance) {
            true => dice.pick(of_hundred),
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
        if dice.percent(25) {
            weather.down_until = now + dice.span(30 * MINUTE);
            self.tally.add("outages", 1);
        }
        if dice.percent(30) {
            weather = Weather::default();
        }
        self.time.note(|| format!("{weather:?}"));
        self.shared.weather(weather);
    }

    fn forget(&mut self) -> Result<(), Flaw> {
        let space = self.dice.index(2);
        let namespace = NAMESPACES[space];
        match self.plan.class {
            Class::Durable => {}
            Class::MayForget => {
                let span = self.dice.span(20 * MINUTE);
                let undone = self.shared.roll_back(namespace, span);
                self.time.note(|| format!("the store forgets its last {undone} changes"));
                self.tally.add("stores that lost changes", u64::from(undone > 0));
            }
            Class::Wiped => {
                let users = self.nodes.iter().filter(|n| n.plan.space == space && !n.is_fixed());
                if users.clone().count() > 0 && users.clone().all(|node| node.started) {
                    self.shared.wipe(namespace);
                    self.time.note(|| format!("the store forgets everything about {namespace}"));
                    self.tally.add("stores wiped", 1);
                    self.wiped[space] = true;
                }
            }
        }
        if self.operator_called[space] && self.dice.percent(50) {
            self.operate(space)?;
        }
        Ok(())
    }
}
