//! The plan of a run: when each fault happens. A pure function of the seed.

use vesta_testkit::Rng;

/// A slot for a process: world, and number in it.
pub(crate) type Slot = (usize, usize);

/// The faults that a world must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fixed machine IDs, each with a state file: folders must be kept.
    Fixed,
    /// A pool in a file: the folder is the store.
    File,
    /// A pool in a file for each of two users of a host; neither knows the other. A machine ID may not pass
    /// from one user to the other, so no clock is stepped.
    Users,
    /// A pool in a networked server: folders may be lost and copied.
    Network {
        /// A lagging replica can take over. A distance in time covers what it forgets, so no clock may
        /// be ahead of the right time there.
        can_fail_over: bool,
        /// An administrator can revoke permissions and remove tables.
        can_refuse: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Starts a process, if none runs in the slot. `keeps` decides between its old state directory and
    /// an empty one; `clock` as for [`Fault::Step`].
    Start {
        slot: Slot,
        keeps: bool,
        clock: &'static str,
    },
    /// Starts another process on a copy of a running one's folder; if folders may not be copied, on
    /// the same folder.
    Twin(Slot),
    /// Starts another process on an empty folder.
    Newcomer(Slot),
    /// Ends the other process of a slot.
    EndTwin(Slot),
    Kill(Slot),
    Stop(Slot),
    Pause(Slot),
    Resume(Slot),
    /// Sets the clock of a process to this distance from the right time, as libfaketime writes it.
    Step(Slot, &'static str),
    LoseState(Slot),
    KillAll,
    StepAll(&'static str),
    PauseStore(usize),
    ResumeStore(usize),
    KillStore(usize),
    StartStore(usize),
    /// The store refuses every request.
    Refuse(usize),
    Accept(usize),
    /// Records of the store roll back to some moments ago.
    SetBack(usize),
    /// A store gets a replica that follows it.
    Replica(usize),
    /// The replica stops following.
    Lag(usize),
    /// The store dies and its replica takes over.
    FailOver(usize),
}

/// A fault and its time, in milliseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: u64,
    pub(crate) fault: Fault,
}

const RIGHT: &str = "+0";
const SMALL: [&str; 7] = ["-1s", "-2s", "-3s", "-5s", "+1s", "+3s", "+8s"];
const SMALL_BACK: [&str; 4] = ["-1s", "-2s", "-3s", "-5s"];
const FAR_BACK: [&str; 5] = ["-7s", "-1h", "-2h", "-30d", "-365d"];
/// Too far ahead to be followed.
const FAR_AHEAD: [&str; 4] = ["+2h", "+1d", "+365d", "+20y"];
/// Time that an administrator takes to repair a refusing store, in milliseconds.
const REPAIR: u64 = 3000;

/// All faults of a run of `length` milliseconds, in order.
pub(crate) fn plan(seed: u64, worlds: &[Kind], slots: usize, length: u64) -> Vec<Moment> {
    let mut rng = Rng::new(seed);
    let mut plan = Plan {
        moments: Vec::new(),
        length,
    };
    for (world, kind) in worlds.iter().enumerate() {
        for slot in 0..slots {
            plan.process(&mut Rng::new(rng.bits()), (world, slot), *kind);
        }
        if let Kind::Network {
            can_fail_over,
            can_refuse,
        } = *kind
        {
            plan.store(&mut Rng::new(rng.bits()), world, can_fail_over, can_refuse);
        }
    }
    plan.all(&mut rng, worlds, slots);
    plan.moments.sort_by_key(|moment| moment.at);
    plan.moments
}

/// Equally often an instant or long enough for every lease to end.
fn outage(rng: &mut Rng) -> u64 {
    if rng.percent(50) {
        rng.span(1000)
    } else {
        rng.below(8000)
    }
}

/// Steps that are followed.
fn small_steps(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Network {
            can_fail_over: true,
            ..
        } => &SMALL_BACK,
        _ => &SMALL,
    }
}

struct Plan {
    moments: Vec<Moment>,
    length: u64,
}

impl Plan {
    fn add(&mut self, at: u64, fault: Fault) {
        // The end of a fault is always scheduled.
        self.moments.push(Moment {
            at: at.min(self.length),
            fault,
        });
    }

    /// Successive faults of one process.
    fn process(&mut self, rng: &mut Rng, slot: Slot, kind: Kind) {
        #[derive(Clone, Copy)]
        enum What {
            Kill,
            Stop,
            Pause,
            Step,
            StepFarBack,
            StepFarAhead,
            LoseState,
            Twin,
        }
        let network = matches!(kind, Kind::Network { .. });
        let small = small_steps(kind);
        let of_network = |weight| if network { weight } else { 0 };
        let steps = |weight| if kind == Kind::Users { 0 } else { weight };
        let weights = [
            (30, What::Kill),
            (15, What::Stop),
            (15, What::Pause),
            (steps(18), What::Step),
            (steps(7), What::StepFarBack),
            (steps(4), What::StepFarAhead),
            (of_network(7), What::LoseState),
            (steps(10), What::Twin),
        ];
        let mut at = rng.below(500);
        self.add(
            at,
            Fault::Start {
                slot,
                keeps: true,
                clock: RIGHT,
            },
        );
        loop {
            at += 300 + rng.below(5000);
            if at >= self.length {
                return;
            }
            match rng.weighed(&weights) {
                What::Kill => {
                    self.add(at, Fault::Kill(slot));
                    at += rng.span(3000);
                    self.start_again(rng, at, slot, kind);
                }
                What::Stop => {
                    self.add(at, Fault::Stop(slot));
                    at += 300 + rng.span(2000); // it may take longer to stop, and is killed then
                    self.add(at, Fault::Kill(slot));
                    at += rng.span(300);
                    self.start_again(rng, at, slot, kind);
                }
                What::Pause => {
                    self.add(at, Fault::Pause(slot));
                    // Equally often an instant or long enough for a takeover.
                    at += if rng.percent(50) {
                        rng.span(1000)
                    } else {
                        rng.below(16_000)
                    };
                    self.add(at, Fault::Resume(slot));
                }
                What::Step => {
                    self.add(at, Fault::Step(slot, rng.pick(small)));
                    at += rng.span(4000);
                    if rng.percent(50) {
                        self.add(at, Fault::Step(slot, RIGHT));
                    }
                }
                What::StepFarBack => {
                    self.add(at, Fault::Step(slot, rng.pick(&FAR_BACK)));
                    at += 500 + rng.below(3000);
                    self.add(at, Fault::Step(slot, RIGHT));
                }
                What::StepFarAhead => {
                    self.add(at, Fault::Step(slot, rng.pick(&FAR_AHEAD)));
                    at += 300 + rng.below(2000);
                    self.add(at, Fault::Step(slot, RIGHT));
                }
                What::LoseState => self.add(at, Fault::LoseState(slot)),
                What::Twin => {
                    let remembers = !network || rng.percent(60);
                    self.add(
                        at,
                        if remembers {
                            Fault::Twin(slot)
                        } else {
                            Fault::Newcomer(slot)
                        },
                    );
                    at += 500 + rng.span(6000);
                    self.add(at, Fault::EndTwin(slot));
                }
            }
        }
    }

    fn start_again(&mut self, rng: &mut Rng, at: u64, slot: Slot, kind: Kind) {
        let wrong = rng.percent(15) && kind != Kind::Users;
        let clock = if wrong {
            rng.pick(&["-1s", "-3s", "-7s"])
        } else {
            RIGHT
        };
        let keeps = !matches!(kind, Kind::Network { .. }) || rng.percent(70);
        self.add(at, Fault::Start { slot, keeps, clock });
    }

    /// Successive outages of one store, and at most one fail-over.
    fn store(&mut self, rng: &mut Rng, world: usize, can_fail_over: bool, can_refuse: bool) {
        let replica_from = self.length / 4 + rng.below(self.length / 4);
        let fail_over_from = replica_from + self.length / 8 + rng.below(self.length / 4);
        let (mut has_replica, mut failed_over) = (!can_fail_over, !can_fail_over);
        let mut at = 1000 + rng.below(self.length / 4);
        while at < self.length {
            if !has_replica && at >= replica_from {
                has_replica = true;
                self.add(at, Fault::Replica(world));
            } else if !failed_over && at >= fail_over_from {
                failed_over = true;
                at = self.fail_over(rng, world, at);
            } else if rng.percent(25) {
                self.add(at, Fault::SetBack(world));
            } else if can_refuse && rng.percent(40) {
                self.add(at, Fault::Refuse(world));
                at += REPAIR;
                self.add(at, Fault::Accept(world));
            } else if rng.percent(50) {
                self.add(at, Fault::PauseStore(world));
                at += outage(rng);
                self.add(at, Fault::ResumeStore(world));
            } else {
                self.add(at, Fault::KillStore(world));
                at += outage(rng);
                self.add(at, Fault::StartStore(world));
            }
            at += 5000 + rng.below(20_000);
        }
    }

    /// A claim that the replica never received, by a process that started just before; and a process that
    /// starts just after and does not see that claim.
    fn fail_over(&mut self, rng: &mut Rng, world: usize, start: u64) -> u64 {
        let [before, after] = [(world, 0), (world, 1)];
        self.add(start, Fault::Lag(world));
        let at = start + rng.within(3000..=8000);
        self.add(at, Fault::FailOver(world));
        for (slot, at) in [
            (before, start + rng.within(500..=2000)),
            (after, at + rng.below(300)),
        ] {
            self.add(at, Fault::Step(slot, RIGHT)); // a wrong clock would be refused
            self.add(at, Fault::Newcomer(slot));
        }
        let end = at + rng.within(8000..=15_000);
        self.add(end, Fault::EndTwin(before));
        self.add(end, Fault::EndTwin(after));
        end
    }

    /// The interleaved faults of all processes.
    fn all(&mut self, rng: &mut Rng, worlds: &[Kind], slots: usize) {
        let small = worlds
            .iter()
            .map(|kind| small_steps(*kind))
            .min_by_key(|steps| steps.len());
        let mut at = self.length / 5 + rng.below(self.length / 8);
        let mut kill = rng.percent(50);
        while at < self.length {
            if kill {
                self.add(at, Fault::KillAll);
                for slot in
                    (0..worlds.len()).flat_map(|world| (0..slots).map(move |slot| (world, slot)))
                {
                    let keeps = true;
                    self.add(
                        at + rng.span(1500),
                        Fault::Start {
                            slot,
                            keeps,
                            clock: RIGHT,
                        },
                    );
                }
            } else {
                self.add(at, Fault::StepAll(rng.pick(small.expect("a world"))));
                at += 500 + rng.below(3000);
                self.add(at, Fault::StepAll(RIGHT));
            }
            kill = !kill;
            at += self.length / 10 + rng.below(20_000).min(self.length / 5);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::*;

    const WORLDS: [Kind; 3] = [
        Kind::Fixed,
        Kind::File,
        Kind::Network {
            can_fail_over: true,
            can_refuse: true,
        },
    ];

    #[test]
    fn a_seed_decides_everything() {
        let plans = [7, 7, 8].map(|seed| plan(seed, &WORLDS, 2, 60_000));
        assert_eq!(plans[0], plans[1]);
        assert_ne!(plans[0], plans[2]);
    }

    #[test]
    fn every_fault_occurs_and_every_outage_ends() {
        let mut all = HashSet::new();
        for seed in 0..50 {
            let plan = plan(seed, &WORLDS, 2, 300_000);
            let kinds: HashSet<_> = plan
                .iter()
                .map(|moment| discriminant(&moment.fault))
                .collect();
            assert!(kinds.len() >= 19, "seed {seed}: {} kinds", kinds.len());
            all.extend(kinds);
            assert!(plan.is_sorted_by_key(|moment| moment.at));
            assert!(plan.iter().all(|moment| moment.at <= 300_000));
        }
        assert_eq!(all.len(), 22);
    }

    #[test]
    fn faults_outside_the_promise_are_left_out() {
        for seed in 0..50 {
            for moment in plan(seed, &[Kind::Fixed, Kind::File, Kind::Users], 2, 300_000) {
                let allowed = match moment.fault {
                    Fault::LoseState(_) | Fault::Newcomer(_) => false,
                    Fault::Start { keeps, .. } => keeps,
                    Fault::PauseStore(_) | Fault::KillStore(_) | Fault::FailOver(_) => false,
                    Fault::Refuse(_) | Fault::SetBack(_) => false,
                    _ => true,
                };
                assert!(allowed, "{moment:?}");
            }
        }
    }
}
