//! Turns settings into a running service: checks them, and claims its machine IDs.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{Field, Id, IdError};

use crate::builder::Builder;
use crate::clock::AnyClock;
use crate::error::{BuildError, ask_store};
use crate::file_system::check_local;
use crate::lease::{
    CLAIM_TIMEOUT, Choice, HeldLeaseFactory, HostGuard, HostState, Keeper, KvStore, Leases,
    MachineSlot, Own, Plan, Rounds, Signals, Slots, Standby, StateFolder, Timing, check_namespace,
    is_own,
};
use crate::machine::{self, MachineSource, Resolved, WorkerNodeStore};
use crate::number::{millis, number};
use crate::random;
use crate::sequence::MAX_BORROW_MILLIS;
use crate::sequence::Rules;
use crate::service::{Backlog, LocalIdService, Straight, in_place};

/// Maximum machine IDs per process; more would only be a mistake.
const MAX_MACHINES: u64 = 1024;
impl Builder {
    /// Builds the service: claims its machine ID, and waits for the store if necessary.
    ///
    /// # Errors
    /// [`BuildError`]; every variant names the remedy.
    pub fn build(mut self) -> Result<LocalIdService, BuildError> {
        let source = self.machine.take().ok_or_else(|| {
            IdError::invalid(
                "machine",
                "no machine ID is configured; choose a fixed one, an IP map, the host ordinal or a \
                 pool (two services with the same one would repeat each other's IDs)",
            )
        })?;
        self.check(&source)?;
        let (meta, clock) = (self.layout, self.clock.clone());
        let gen_method = in_place(&meta, self.gen_method)?;
        let rules = self.rules(&source)?;
        let factory = HeldLeaseFactory {
            meta,
            rules,
            clock: clock.clone(),
            clock_kind: self.clock_kind,
            populator: self.populator,
            version: self.version,
        };
        let folder = self.folder(&source)?;
        let (resolved, machine_source) = source.resolve(&meta, &folder, &clock)?;
        let (slots, window) = match resolved {
            Resolved::Unbounded(machine) => (Slots::unkept([unbounded(&factory, machine)])?, None),
            Resolved::UsedUp(nodes) => (self.use_up(&*nodes, &factory)?, None),
            Resolved::Leased {
                store,
                choice,
                is_damaged,
            } => {
                let plan = self.plan(&*store, choice, is_damaged, rules)?;
                let window = plan.timing.window;
                (self.claim(plan, store, folder, &factory)?, Some(window))
            }
        };
        Ok(LocalIdService {
            gen_method,
            straight: Straight::new(&self, &slots, gen_method),
            settings: self,
            rules,
            machine_source,
            window,
            slots,
            backlog: Backlog::default(),
            positions_lost: Arc::default(),
        })
    }

    /// Refuses settings that are out of range or inconsistent.
    fn check(&self, source: &MachineSource) -> Result<(), BuildError> {
        let meta = &self.layout;
        check_namespace(&self.namespace)?;
        IdError::check("version", self.version, 0, meta.max(Field::Version))?;
        meta.check_generates()?;
        self.sequence_start.check(meta)?;
        if self.standby && !matches!(source, MachineSource::Reserved { .. }) {
            let reason = "standing by requires one machine ID that a store reserves";
            return Err(IdError::invalid("standby", reason).into());
        }
        let machines = number(self.machine_count);
        IdError::check("machine count", machines, 1, MAX_MACHINES)?;
        if machines > 1 && !source.hands_out() {
            let reason = "several machine IDs require a pool";
            return Err(IdError::invalid("machine count", reason).into());
        }
        // At least twice the maximum lead: a shorter window would end before it begins.
        let window = millis(self.doubtful_window);
        Ok(IdError::check(
            "doubtful_window_ms",
            window,
            10_000,
            60_000,
        )?)
    }

    /// The state directory, checked if the source uses it.
    fn folder(&self, source: &MachineSource) -> Result<StateFolder, BuildError> {
        let path = self.state_dir.clone();
        if !matches!(
            source,
            MachineSource::Disposable { .. } | MachineSource::Stateless(_)
        ) {
            let checked = check_local(&path, self.allow_network_fs);
            checked.map_err(|refused| IdError::invalid("state_dir", refused))?;
        }
        let namespace = self.namespace.clone();
        Ok(StateFolder {
            path,
            namespace,
            fingerprint: self.layout.fingerprint(),
            place: match source {
                MachineSource::Pool { store, .. } | MachineSource::Reserved { store, .. } => {
                    store.place()
                }
                _ => String::new(),
            },
        })
    }

    const fn claim_timeout(&self) -> Duration {
        if self.wait_for_store {
            Duration::MAX
        } else {
            CLAIM_TIMEOUT
        }
    }

    /// Slots of single-use machine IDs.
    fn use_up(
        &self,
        nodes: &dyn WorkerNodeStore,
        factory: &HeldLeaseFactory,
    ) -> Result<Slots, BuildError> {
        let clock = &*factory.clock;
        let member = |_| {
            let timeout = self.claim_timeout();
            unbounded(
                factory,
                machine::use_up_number(nodes, &factory.meta, clock, timeout)?,
            )
        };
        let slots = Slots::unkept((0..self.machine_count).map(member))?;
        let doubt = machine::doubt(nodes, self.store_doubt, clock);
        for slot in slots.iter() {
            slot.state.lock().doubt.clone_from(&doubt);
        }
        Ok(slots)
    }

    /// The plan of a claim in this store.
    fn plan(
        &self,
        store: &dyn KvStore,
        choice: Choice,
        is_damaged: bool,
        rules: Rules,
    ) -> Result<Plan, BuildError> {
        let mut timing = self.timing.unwrap_or_else(|| match self.standby {
            true => Timing::STANDBY,
            false => choice.timing(store.timing()),
        });
        timing.check()?;
        let standby = self.standby.then_some(timing.window);
        let standby = standby.map(|window| self.terms(window, *choice.range().start()));
        timing.window += self.borrow_ahead;
        if self.standby {
            // The bound lies on a tick: with this one, it never ends a lease before its own clock does.
            timing.window += Duration::from_millis(self.layout.spec().unit.millis());
        }
        timing.takeover_grace = timing.takeover_grace.max(timing.window * 3);
        // A state file is its own local record, and never forgets.
        let remembers = !is_state_file(&choice);
        let usual_window = store.usual_window(); // the first question to the store: it connects
        let host = crate::os::host_name();
        let host = match store.via() {
            Some(server) => format!("{host} via {server}"),
            None => host,
        };
        let mut plan = Plan {
            // Drawn, and kept in the state files: a name is the same on all machines of one image.
            start_at: number_of(self.clock.random()),
            store: store.describe(),
            namespace: self.namespace.clone(),
            meta: self.layout,
            rules,
            timing,
            choice,
            order: self.claim_order,
            count: self.machine_count,
            claim_timeout: self.claim_timeout(),
            host,
            pid: std::process::id(),
            is_damaged,
            keeps_owners: store.keeps_owners(),
            doubted: if remembers {
                self.store_doubt
            } else {
                Some(false)
            },
            // A state file has no other processes to announce a window to.
            usual_window: match remembers {
                true => Duration::ZERO,
                false => timing.window,
            },
            doubtful_window: self.doubtful_window,
            standby: standby.transpose()?,
        };
        plan.learn(usual_window);
        if plan.window_ticks(false, false) < 2 {
            let reason = "window must be at least two ticks of the layout";
            return Err(IdError::invalid("timing", reason).into());
        }
        Ok(plan)
    }

    /// Terms under which the process holds its machine ID and others stand by for it.
    fn terms(&self, window: Duration, machine: u64) -> Result<Standby, IdError> {
        let base = self.layout.pack(&Id {
            machine,
            version: self.version,
            id_type: self.layout.id_type(),
            ..Id::default()
        })?;
        let base = base | in_place(&self.layout, self.gen_method)?;
        Ok(Standby { window, base })
    }

    /// Claims machine IDs by a plan, and starts a keeper that holds them.
    fn claim(
        &self,
        plan: Plan,
        store: Arc<dyn KvStore>,
        folder: StateFolder,
        factory: &HeldLeaseFactory,
    ) -> Result<Slots, BuildError> {
        let Self {
            namespace,
            clock,
            drive,
            ..
        } = self;
        let leases = Leases::new(store, namespace);
        if let Choice::Only { machine, .. } = plan.choice
            && plan.standby.is_none()
            && let Ok(None) = ask_store(|| leases.lock(machine))
        {
            let (namespace, users) = (namespace.clone(), HostGuard::users(namespace));
            return Err(match is_own(&namespace, machine) {
                true => BuildError::BuiltTwice { namespace, machine },
                false => BuildError::InUseHere {
                    namespace,
                    machine,
                    users,
                },
            });
        }
        // A service with a custom clock is a simulated process, with its own memory.
        let own = match clock {
            AnyClock::System(_) => Own::of_process(namespace, &plan.meta),
            AnyClock::Other(_) => Own::default(),
        };
        let remembers = !is_state_file(&plan.choice);
        let host = HostState::new(remembers.then_some(folder), own);
        let rounds = Rounds::start(plan, leases, host, factory.clone()).map_err(|mut error| {
            if let BuildError::Exhausted { users, .. } = &mut error {
                *users = HostGuard::users(namespace);
            }
            error
        })?;
        let keeper = Keeper::start(rounds, *drive)
            .map_err(|e| BuildError::io("start the keeper's thread", e))?;
        Ok(Slots::kept(keeper))
    }

    /// The generation rules for these settings.
    fn rules(&self, source: &MachineSource) -> Result<Rules, BuildError> {
        let (meta, below) = (&self.layout, self.sequence_start.below());
        let tick = meta.spec().unit.millis();
        let ahead = millis(self.borrow_ahead);
        IdError::check("borrow_ahead_ms", ahead, 0, MAX_BORROW_MILLIS)?;
        if ahead > 0 && ahead < tick {
            let reason = format!("must be 0, or at least one tick of the layout, which is {tick}");
            return Err(IdError::invalid("borrow_ahead_ms", reason).into());
        }
        if ahead > 0 && matches!(source, MachineSource::Stateless(_)) {
            let reason =
                "a stateless machine ID cannot borrow: a restart would repeat the borrowed IDs";
            return Err(IdError::invalid("borrow_ahead_ms", reason).into());
        }
        let rules = Rules::new(meta.bits(Field::Time), meta.bits(Field::Seq), ahead / tick);
        let rules = rules.starting_below(below, random::u63());
        if !self.pacing {
            return Ok(rules);
        }
        let rules = rules.paced(tick);
        let slice = rules.first_slice();
        if below > slice {
            let reason = format!("with pacing at most random:{slice}, the first slice of a tick");
            return Err(IdError::invalid("sequence_start", reason).into());
        }
        Ok(rules)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "64 bits of it are wanted")]
const fn number_of(random: u128) -> u64 {
    random as u64
}

/// True if the store is a state file, which belongs to a single machine ID.
const fn is_state_file(choice: &Choice) -> bool {
    matches!(choice, Choice::Only { alone: true, .. })
}

/// Creates a machine slot without a lease.
fn unbounded(factory: &HeldLeaseFactory, machine: u64) -> Result<MachineSlot, BuildError> {
    let now = factory.meta.tick_at(factory.clock.wall())?;
    let lease = factory.make(machine, 0, factory.rules.position(now), u64::MAX, None)?;
    Ok(MachineSlot::new(
        lease,
        factory.clock.monotonic(),
        Arc::<Signals>::default(),
    ))
}
