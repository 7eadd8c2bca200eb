//! Recovery: the operator's actions, and the fault-free end of each history, in which every node
//! must issue again.

use std::fs;

use vesta_service::ErrorKind;
use vesta_service::contract::UnixMillis;

use super::ledger::Flaw;
use super::node::Node;
use super::plan::{NAMESPACES, Source};
use super::store::Weather;
use super::time::{HOUR, MILLI, MINUTE, SECOND};
use super::world::World;

impl World {
    /// Performs the steps that docs/operate/failures.md prescribes for a store that has forgotten
    /// something. Returns the moment of the new floor.
    pub(crate) fn operate(&mut self, space: usize) -> Result<u64, Flaw> {
        let namespace = NAMESPACES[space];
        // A late request reached other entries of its namespace: only another namespace helps.
        if self.shared.lost_its_namespace(namespace) {
            self.operator_called[space] = false;
            return Ok(self.time.now());
        }
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            if node.plan.space == space && !node.is_fixed() && node.service.is_some() {
                if self.rng.percent(50) {
                    self.stop(number)?
                } else {
                    self.kill(number)
                }
            }
        }
        let layout = self.plan.layout;
        let seq_bits = layout.spec().seq_bits;
        let window = self.plan.window();
        let moment = UnixMillis((self.time.now() + window + MINUTE) / MILLI);
        let by_clock = layout.tick_at(moment).unwrap_or(0) + 1;
        // The position up to which it was reserved, according to the hosts that refuse.
        let by_hosts = (self.shared.highest_grant(namespace) >> seq_bits) + 1;
        let floor = by_clock.max(by_hosts) << seq_bits;
        self.time
            .note(|| format!("an operator raises the floor of {namespace} to {floor:#x}"));
        self.counts.add("floors raised", 1);
        self.shared
            .raise_floor(namespace, &layout.fingerprint(), floor);
        let lost = self.shared.lost(namespace);
        self.counts.add("records repaired", lost.len() as u64);
        self.shared.repair(namespace, &lost, floor);
        self.wiped[space] = false;
        self.operator_called[space] = false;
        Ok(layout
            .moment_of(floor >> seq_bits)
            .map_or(u64::MAX, |moment| moment.0 * MILLI))
    }

    fn kill(&mut self, number: usize) {
        self.time.note(|| format!("node {number} is killed"));
        self.nodes[number].crash();
    }

    /// All faults end. Within a bounded time every node issues again, unless an operator has to act.
    pub(crate) fn end_well(&mut self) -> Result<(), Flaw> {
        self.time.note(|| "all faults end".into());
        self.faultless_since = Some(self.time.now());
        self.shared.weather(Weather::default());
        self.shared.deliver(true);
        // Sequential claims would each watch an expired owner without renewals in between. By then
        // the first owners would look expired again, and this would never end.
        self.time.watch_for(SECOND.min(self.plan.renew * 3 / 2));
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            node.wire.cut_off(false);
            node.clock.correct();
            if node.paused {
                self.wake(number)?;
            }
        }
        // A clock that was set right by more than an hour is believed after ten minutes.
        let mut limit = self.time.now() + self.plan.grace() + 2 * self.plan.window() + 15 * MINUTE;
        let everybody = self.one_for_each_reserved_id()?;
        let mut waiting = everybody.clone();
        let mut pause = SECOND;
        // A planted store continues to forget.
        let mut operations = 0;
        for (space, namespace) in NAMESPACES.iter().enumerate() {
            self.operator_called[space] |= !self.shared.lost(namespace).is_empty();
        }
        loop {
            for number in waiting.clone() {
                self.stop_if_in_need(number)?;
                if self.nodes[number].service.is_none() {
                    self.start(number)?;
                }
                let before = self.nodes[number].made(&self.ledgers);
                self.generate(number)?;
                if self.nodes[number].made(&self.ledgers) > before {
                    waiting.retain(|n| *n != number);
                }
            }
            for space in 0..NAMESPACES.len() {
                if self.operator_called[space] && operations < 20 {
                    operations += 1;
                    let floor = self.operate(space)?;
                    let wait = floor.saturating_sub(self.time.now());
                    limit = limit.max(self.time.now()).saturating_add(wait);
                    waiting = everybody.clone();
                }
            }
            // A node whose delay exceeds any reasonable wait is not retried.
            let hopeless = waiting
                .iter()
                .all(|number| self.has_a_reason(*number, HOUR));
            if hopeless || self.time.now() > limit {
                break;
            }
            self.pass(pause)?;
            pause = (pause * 2).min(30 * SECOND);
        }
        // The condition may have passed meanwhile: while others claim, time passes between two attempts.
        for number in waiting.clone() {
            if self.nodes[number].service.is_none() {
                self.start(number)?;
            }
        }
        let reasons: Vec<_> = waiting.iter().map(|n| self.has_a_reason(*n, 0)).collect();
        let well = (everybody.len() - waiting.len()) as u64;
        for (number, reason) in waiting.into_iter().zip(reasons) {
            let is_well = !self.plan.is_checked() || self.comes_back_when_it_said(number)?;
            if !is_well && !reason && !self.layout_ends_soon() {
                let node = &self.nodes[number];
                let status = node.service.as_ref().map(|service| service.machines());
                return Err(Flaw::other(format!(
                    "node {number} did not come back: {status:#?}"
                )));
            }
            self.counts.add("nodes that need a person at the end", 1);
        }
        self.counts.add("nodes that were well at the end", well);
        Ok(())
    }

    /// The nodes that must recover: of several with the same reserved machine ID, the operator keeps only the
    /// first. Here they would keep taking it from each other, as no node renews while one waits.
    fn one_for_each_reserved_id(&mut self) -> Result<Vec<usize>, Flaw> {
        let mut everybody: Vec<usize> = Vec::new();
        for number in 0..self.nodes.len() {
            let plan = |n: usize| (self.plan.nodes[n].space, self.plan.nodes[n].source);
            let reserved = matches!(plan(number).1, Source::Reserved(_));
            if reserved
                && everybody
                    .iter()
                    .any(|earlier| plan(*earlier) == plan(number))
            {
                self.stop(number)?;
            } else {
                everybody.push(number);
            }
        }
        Ok(everybody)
    }

    /// A fixed machine ID that was used up to a future moment waits for it, and reports the delay.
    fn comes_back_when_it_said(&mut self, number: usize) -> Result<bool, Flaw> {
        for attempt in 0..8 {
            let node = &self.nodes[number];
            let Some(service) = &node.service else {
                return Ok(false);
            };
            let Err(error) = service.try_gen_id() else {
                return Ok(true);
            };
            let Some(wait) = error.retry_after() else {
                return Ok(false);
            };
            self.time.note(|| format!("node {number} waits: {error}"));
            if attempt == 0 && error.kind() == ErrorKind::ClockBehind {
                self.counts.add("nodes that waited for their clock", 1);
            }
            // Wall clocks show whole milliseconds.
            self.time
                .advance(u64::try_from(wait.as_nanos()).expect("years at most") + MILLI);
            self.keep(number);
        }
        Ok(false)
    }

    /// Stops a node that only a restart helps: a store that refuses permanently is not asked again.
    fn stop_if_in_need(&mut self, number: usize) -> Result<(), Flaw> {
        let node = &self.nodes[number];
        if node.wire.is_refused_for_good() {
            self.counts.add("restarts after a refusal for good", 1);
            self.stop(number)?;
        }
        Ok(())
    }

    fn layout_ends_soon(&self) -> bool {
        let soon = self.time.now() + self.plan.grace() + 2 * self.plan.window() + 5 * MINUTE;
        self.plan.tick(UnixMillis(soon / MILLI)) > self.plan.last_tick()
    }

    /// True if only an operator can help: the layout ends, the usable machine IDs were used up to a moment far ahead
    /// by a wrong clock, or other nodes hold them.
    fn has_a_reason(&self, number: usize, far: u64) -> bool {
        if self.layout_ends_soon() {
            return true;
        }
        let node = &self.nodes[number];
        // Forgotten, while a late request reached other entries of its namespace.
        if !node.is_fixed() && self.shared.lost_its_namespace(node.namespace()) {
            return true;
        }
        let layout = &self.plan.layout;
        let unit = layout.spec().unit.millis() * MILLI;
        let tick = |nanos: u64| {
            layout
                .tick_at(UnixMillis(nanos / MILLI))
                .unwrap_or(u64::MAX)
        };
        // All records written by right clocks are free by then.
        let by_right_clocks =
            tick(self.faultless_since.unwrap_or(0) + self.plan.window() + 6 * SECOND);
        let ahead = |bound: u64, grace: u64| {
            let bound = bound >> layout.spec().seq_bits;
            let free = bound + (grace + 2 * MINUTE) / unit;
            bound > by_right_clocks && free > tick(self.time.now()) + far / unit
        };
        let others = |machine: u64| {
            let others = self.nodes.iter().filter(|n| n.number != number);
            others
                .filter(|other| other.plan.space == node.plan.space)
                .any(|other| other.machines().contains(&machine))
        };
        let out_of_reach = |machine: u64| {
            let (floor, grace) = (self.shared.floor(node.namespace()), self.plan.grace());
            others(machine)
                || ahead(node.remembered(machine), 0)
                || match self.shared.record(node.namespace(), machine) {
                    Some(record) => ahead(record.bound.max(floor), grace),
                    None => ahead(floor, 0),
                }
        };
        match node.plan.source {
            Source::Pool(last) => {
                (0..=last).filter(|machine| !out_of_reach(*machine)).count() < node.plan.count
            }
            Source::Reserved(id) => out_of_reach(id),
            Source::Fixed(_) if node.service.is_some() => false, // it reports its own delay
            Source::Fixed(id) => ahead(node.remembered(id), 0),
            Source::Stateless(_) => false,
        }
    }
}

impl Node {
    /// The bound that its host has recorded for a machine ID that none of its processes holds.
    fn remembered(&self, machine: u64) -> u64 {
        let namespace = self.own_namespace();
        let [own, pool] = [
            format!("{namespace}-{machine}.state"),
            format!("{namespace}.pool"),
        ]
        .map(|file| fs::read(self.folder.join(file)).unwrap_or_default());
        let subject = format!("machine ID {machine} of ");
        let of_machine = |slot: &&[u8]| String::from_utf8_lossy(slot).contains(&subject);
        let slots = own.chunks(1024).chain(pool.chunks(1024).filter(of_machine));
        slots.filter_map(bound_of).max().unwrap_or(0)
    }

    /// The number of IDs issued in its namespace.
    fn made(&self, ledgers: &[super::ledger::Ledger]) -> u64 {
        ledgers[self.plan.space].issued
    }
}

/// The bound in a slot of a state file.
fn bound_of(slot: &[u8]) -> Option<u64> {
    let (checksum, text) = slot.split_at_checked(8)?;
    let (_, rest) = std::str::from_utf8(text).ok()?.split_once(r#""bound":""#)?;
    let is_whole = format!("{:08x}", crc32fast::hash(text)).as_bytes() == checksum;
    rest.split('"').next()?.parse().ok().filter(|_| is_whole)
}
