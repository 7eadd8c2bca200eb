//! Builder of the embedded service. Nothing half-built ever exists.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{Field, GenMethod, IdError, IdMeta, SequenceStart};

use crate::BuildError;
use crate::backlog::Backlog;
use crate::clock::{AnyClock, Clock, ClockKind, SystemClock};
use crate::error::ask_store;
use crate::file_system::check_local;
use crate::lease::{
    CLAIM_TIMEOUT, Choice, ClaimOrder, HeldLeaseFactory, HostState, Keeper, Leases, MachineSlot,
    Own, Plan, Rounds, Signals, Slots, StateFolder, Timing, USUAL_DOUBTFUL_WINDOW,
};
use crate::machine::{self, MachineSource, Resolved};
use crate::populator::PopulatorKind;
use crate::random;
use crate::sequence::Rules;
use crate::service::{LocalIdService, in_place, millis, number};
use crate::state_dir::default_state_dir;
use crate::wait::Drive;

/// More machine IDs in one process would only be a mistake.
const MAX_MACHINES: u64 = 1024;
/// The furthest that IDs may be made ahead of the clock, in milliseconds.
pub const MAX_BORROW_MILLIS: u64 = 10_000;
const MAX_NAMESPACE: usize = 64;

/// Builds a [`LocalIdService`]. Only [`machine`](Self::machine) has no default.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) layout: IdMeta,
    pub(crate) populator: PopulatorKind,
    gen_method: GenMethod,
    version: u64,
    pub(crate) max_wait: Duration,
    pub(crate) clock: AnyClock,
    pub(crate) drive: Drive,
    pub(crate) namespace: String,
    state_dir: PathBuf,
    allow_network_fs: bool,
    machine: Option<MachineSource>,
    machine_count: usize,
    claim_order: ClaimOrder,
    sequence_start: SequenceStart,
    clock_kind: ClockKind,
    pub(crate) pacing: bool,
    borrow_ahead: Duration,
    timing: Option<Timing>,
    wait_for_store: bool,
    store_may_forget: Option<bool>,
    pub(crate) doubtful_window: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            layout: IdMeta::MAX_PEAK,
            populator: PopulatorKind::default(),
            gen_method: GenMethod::default(),
            version: 0,
            max_wait: Duration::from_secs(2),
            clock: AnyClock::System(SystemClock::new()),
            drive: Drive::default(),
            namespace: "default".into(),
            state_dir: default_state_dir(),
            allow_network_fs: false,
            machine: None,
            machine_count: 1,
            claim_order: ClaimOrder::default(),
            sequence_start: SequenceStart::default(),
            clock_kind: ClockKind::default(),
            pacing: false,
            borrow_ahead: Duration::ZERO,
            timing: None,
            wait_for_store: false,
            store_may_forget: None,
            doubtful_window: USUAL_DOUBTFUL_WINDOW,
        }
    }
}

impl Builder {
    /// The layout of the IDs, or one [region](IdMeta::in_region) of it. Each machine ID must then lie within
    /// the region, which is a pool's range by default; ordinals count from its first machine ID on. A namespace
    /// is for one region. Default: [`IdMeta::MAX_PEAK`].
    pub fn layout(self, layout: IdMeta) -> Self {
        Self { layout, ..self }
    }

    /// The populator, which guards the position. Default: [`PopulatorKind::Atomic`].
    pub fn populator(self, populator: PopulatorKind) -> Self {
        Self { populator, ..self }
    }

    /// The genMethod field. Default: [`GenMethod::Embed`]. Layouts without the field do
    /// without it.
    pub fn gen_method(self, gen_method: GenMethod) -> Self {
        Self { gen_method, ..self }
    }

    /// The version field. Default: 0; 1 makes IDs negative as signed numbers.
    pub fn version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// The longest wait of one call. Default: 2 s.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// Another clock than the system's. A clock that does not run by itself needs
    /// [`Drive::ByHand`].
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: AnyClock::Other(clock), ..self }
    }

    /// The driver of renewals. Default: [`Drive::Thread`].
    pub fn drive(self, drive: Drive) -> Self {
        Self { drive, ..self }
    }

    /// The namespace: machine IDs whose IDs may meet in one table share it. Default: `default`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// The folder of the state files; created if it does not exist. Default:
    /// [`default_state_dir`](crate::options::default_state_dir).
    pub fn state_dir(self, state_dir: impl Into<PathBuf>) -> Self {
        Self { state_dir: state_dir.into(), ..self }
    }

    /// Keeps state also on a network file system, where two hosts that reach the same folder may issue the
    /// same IDs; a warning says so. Default: it is refused, on Linux.
    pub fn allow_network_fs(self, allow_network_fs: bool) -> Self {
        Self { allow_network_fs, ..self }
    }

    /// Where the machine ID comes from. There is no default.
    pub fn machine(self, machine: MachineSource) -> Self {
        Self { machine: Some(machine), ..self }
    }

    /// The number of machine IDs the service holds at once, from a pool. Capacity multiplies: threads are
    /// spread over them, each ID's line strictly increases, and the loss of one costs its share.
    /// IDs of different lines made in one tick are in no order. Default: 1.
    pub fn machine_count(self, machine_count: usize) -> Self {
        Self { machine_count, ..self }
    }

    /// Which of a pool's free machine IDs is taken. Default: [`ClaimOrder::Stable`].
    pub fn claim_order(self, claim_order: ClaimOrder) -> Self {
        Self { claim_order, ..self }
    }

    /// Where the sequence of a new tick begins. In a layout with the sequence lowest, with low traffic and
    /// `Zero`, which is the default, nearly every ID ends in the same digits, and `id % n` sends them to one
    /// shard; `Random(100)` spreads them, as Leaf does, for up to a hundred IDs of each tick's capacity.
    pub fn sequence_start(self, sequence_start: SequenceStart) -> Self {
        Self { sequence_start, ..self }
    }

    /// The clock that the time field follows, precise or coarse. Default: [`ClockKind::Precise`].
    pub fn clock_kind(self, clock_kind: ClockKind) -> Self {
        Self { clock_kind, ..self }
    }

    /// Gives a tick out in slices of at most 4 ms, and waiting calls of
    /// [`gen_id`](vesta_intf::IdService::gen_id) their positions in the order in which they came: at the
    /// capacity nobody then waits for the rest of a second, and nobody is overtaken for long. What a slice
    /// leaves, the later ones of its tick have too; the capacity stays the same. Default: no.
    pub fn pacing(self, pacing: bool) -> Self {
        Self { pacing, ..self }
    }

    /// The time that sequence numbers may be taken ahead of the clock: 0 to 10 s, rounded down to whole
    /// ticks.
    /// Bursts beyond the capacity of a tick are then served at once, with IDs whose time field leads
    /// by as much, until so many ticks are used up. The window grows by it, so that a
    /// restart repeats nothing. Default: 0.
    pub fn borrow_ahead(self, borrow_ahead: Duration) -> Self {
        Self { borrow_ahead, ..self }
    }

    /// Makes [`build`](Self::build) wait as long as it takes for a store that does not answer, instead
    /// of 30 s. Default: no.
    pub fn wait_for_store(self, wait_for_store: bool) -> Self {
        Self { wait_for_store, ..self }
    }

    /// Says whether the store may forget what it acknowledged, for what cannot be seen: a proxy or a
    /// managed database with a copy that lags and may take over (`true`), or one whose fail-over loses
    /// nothing (`false`). Default: as far as the store can tell. With a store that may forget, the
    /// first ID after a claim comes about 7 s later. Once that is written down in the namespace, only
    /// [`Leases::trust`](crate::lease::Leases::trust) ends it.
    pub fn store_may_forget(self, may_forget: bool) -> Self {
        Self { store_may_forget: Some(may_forget), ..self }
    }

    /// The window from a store that may forget: 10 to 60 s. IDs are made for so long while the store is
    /// away, less up to 4 s for the renewal that was due, and the first ID after a claim comes so much
    /// later, less 3 s. Default: 10 s.
    pub fn doubtful_window(self, doubtful_window: Duration) -> Self {
        Self { doubtful_window, ..self }
    }

    /// Other durations than the store's own.
    pub fn timing(self, timing: Timing) -> Self {
        Self { timing: Some(timing), ..self }
    }

    /// Builds the service: claims its machine ID, and may wait for a store while doing so.
    ///
    /// # Errors
    /// [`BuildError`]; every case says what to do.
    pub fn build(mut self) -> Result<LocalIdService, BuildError> {
        let meta = self.layout;
        let source = self.machine.take().ok_or_else(|| {
            IdError::invalid(
                "machine",
                "no machine ID is configured; choose a fixed one, an IP map, the host ordinal or a \
                 pool (two services with the same one would repeat each other's IDs)",
            )
        })?;
        check_namespace(&self.namespace)?;
        IdError::check("version", self.version, 0, meta.max(Field::Version))?;
        meta.check_generates()?;
        let gen_method = in_place(&meta, self.gen_method)?;
        self.sequence_start.check(&meta)?;
        let rules = self.rules(&source)?;
        let machines = number(self.machine_count);
        IdError::check("machine count", machines, 1, MAX_MACHINES)?;
        if machines > 1 && !source.hands_out() {
            let reason = "only a pool hands out several machine IDs";
            return Err(IdError::invalid("machine count", reason).into());
        }
        // At least twice the greatest lead: a shorter one would end before it begins.
        IdError::check("doubtful_window_ms", millis(self.doubtful_window), 10_000, 60_000)?;
        let factory = HeldLeaseFactory {
            meta,
            rules,
            clock: self.clock.clone(),
            clock_kind: self.clock_kind,
            populator: self.populator,
            version: self.version,
            lost: Arc::default(),
        };
        let claim_timeout = if self.wait_for_store { Duration::MAX } else { CLAIM_TIMEOUT };
        let folder = StateFolder {
            path: self.state_dir.clone(),
            namespace: self.namespace.clone(),
            fingerprint: meta.fingerprint(),
        };
        if !matches!(source, MachineSource::Disposable { .. } | MachineSource::Stateless(_)) {
            let checked = check_local(&folder.path, self.allow_network_fs);
            checked.map_err(|refused| IdError::invalid("state_dir", refused))?;
        }
        let (resolved, machine_source) = source.resolve(&meta, &folder, &self.clock)?;
        let (slots, window) = match resolved {
            Resolved::Unbounded(machine) => (Slots::unkept([unbounded(&factory, machine)])?, None),
            Resolved::UsedUp(nodes) => {
                let member = |_| {
                    let machine =
                        machine::use_up_number(&*nodes, &meta, &*self.clock, claim_timeout)?;
                    unbounded(&factory, machine)
                };
                let slots = Slots::unkept((0..self.machine_count).map(member))?;
                let doubt = machine::doubt(&*nodes, self.store_may_forget, &*self.clock);
                for slot in slots.iter() {
                    slot.state.lock().doubt.clone_from(&doubt);
                }
                (slots, None)
            }
            Resolved::Leased { store, choice, guard } => {
                let mut timing = self.timing.unwrap_or_else(|| choice.timing(store.timing()));
                timing.check()?;
                timing.window += self.borrow_ahead;
                timing.takeover_grace = timing.takeover_grace.max(timing.window * 3);
                // A state file remembers by itself, and forgets nothing.
                let remembers = !matches!(choice, Choice::Only { alone: true, .. });
                let may_forget = if remembers { self.store_may_forget } else { Some(false) };
                let host = crate::os::host_name();
                // Pools in files that do not see each other rarely begin with the same machine ID.
                let start_at =
                    crc32fast::hash((host.clone() + &store.describe()).as_bytes()).into();
                let plan = Plan {
                    start_at,
                    store: store.describe(),
                    namespace: self.namespace.clone(),
                    meta,
                    rules,
                    timing,
                    choice,
                    order: self.claim_order,
                    count: self.machine_count,
                    claim_timeout,
                    host,
                    pid: std::process::id(),
                    guard,
                    may_forget,
                    // Others may borrow. A state file has no other process to tell.
                    usual_window: match remembers {
                        true => store.timing().window + Duration::from_millis(MAX_BORROW_MILLIS),
                        false => timing.window,
                    },
                    doubtful_window: self.doubtful_window,
                };
                if plan.window_ticks(false, false) < 2 {
                    let reason = "window must be at least two ticks of the layout";
                    return Err(IdError::invalid("timing", reason).into());
                }
                let leases = Leases::new(store, &self.namespace);
                if let Choice::Only { machine, .. } = plan.choice
                    && let Ok(None) = ask_store(|| leases.lock(machine))
                {
                    return Err(BuildError::InUseHere { namespace: self.namespace, machine });
                }
                // A service with another clock is a simulated process, with its own memory.
                let own = match &self.clock {
                    AnyClock::System(_) => Own::of_process(&self.namespace, &meta),
                    AnyClock::Other(_) => Own::default(),
                };
                let host = HostState::new(remembers.then(|| folder.clone()), own);
                let rounds = Rounds::start(plan, leases, host, factory.clone())?;
                let keeper = Keeper::start(rounds, self.drive)
                    .map_err(|e| BuildError::io("start the keeper's thread", e))?;
                (Slots::kept(keeper), Some(timing.window))
            }
        };
        Ok(LocalIdService {
            gen_method,
            settings: self,
            rules,
            machine_source,
            window,
            slots,
            backlog: Backlog::default(),
            positions_lost: factory.lost,
        })
    }

    /// The rule of generation by these settings.
    fn rules(&self, source: &MachineSource) -> Result<Rules, BuildError> {
        let (meta, below) = (&self.layout, self.sequence_start.below());
        let tick = meta.spec().unit.millis();
        let ahead = u64::try_from(self.borrow_ahead.as_millis()).unwrap_or(u64::MAX);
        IdError::check("borrow_ahead_ms", ahead, 0, MAX_BORROW_MILLIS)?;
        if ahead > 0 && ahead < tick {
            let reason = format!("must be 0, or at least one tick of the layout, which is {tick}");
            return Err(IdError::invalid("borrow_ahead_ms", reason).into());
        }
        if ahead > 0 && matches!(source, MachineSource::Stateless(_)) {
            let reason =
                "a stateless machine ID cannot borrow: a restart would repeat what was borrowed";
            return Err(IdError::invalid("borrow_ahead_ms", reason).into());
        }
        let rules = Rules::new(meta.bits(Field::Time), meta.bits(Field::Seq), ahead / tick);
        let rules = rules.starting_below(below, random::u63());
        if !self.pacing {
            return Ok(rules);
        }
        let rules = rules.paced(tick);
        let slice = (meta.max(Field::Seq) + 1) >> rules.slice_bits();
        if below > slice {
            let reason =
                format!("with pacing at most random:{slice}, which a slice of a tick holds");
            return Err(IdError::invalid("sequence_start", reason).into());
        }
        Ok(rules)
    }
}

/// Checks a name that becomes part of file names.
fn check_namespace(name: &str) -> Result<(), IdError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=MAX_NAMESPACE).contains(&name.len())
        && name.chars().all(allowed)
        && !name.starts_with('.')
    {
        return Ok(());
    }
    let must = format!("must be 1 to {MAX_NAMESPACE} letters, digits, `.`, `_` or `-`");
    Err(IdError::invalid("namespace", format!("`{name}` {must}")))
}

/// A machine slot without a lease, from now on.
fn unbounded(factory: &HeldLeaseFactory, machine: u64) -> Result<MachineSlot, BuildError> {
    let now = factory.meta.tick_at(factory.clock.wall())?;
    let lease = factory.make(machine, 0, factory.rules.position(now), u64::MAX)?;
    Ok(MachineSlot::new(lease, factory.clock.monotonic(), Arc::<Signals>::default()))
}
