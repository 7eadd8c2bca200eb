//! Settings of an embedded service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{GenMethod, IdMeta, SequenceStart};

use crate::clock::{AnyClock, Clock, ClockKind, SystemClock};
use crate::lease::{ClaimOrder, Timing, USUAL_DOUBTFUL_WINDOW};
use crate::machine::MachineSource;
use crate::populator::PopulatorKind;
use crate::state_dir::default_state_dir;
use crate::wait::Drive;

/// Builds a [`LocalIdService`](crate::LocalIdService). Only [`machine`](Self::machine) has no default.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) layout: IdMeta,
    pub(crate) populator: PopulatorKind,
    pub(crate) gen_method: GenMethod,
    pub(crate) version: u64,
    pub(crate) max_wait: Duration,
    pub(crate) clock: AnyClock,
    pub(crate) drive: Drive,
    pub(crate) namespace: String,
    pub(crate) state_dir: PathBuf,
    pub(crate) allow_network_fs: bool,
    pub(crate) machine: Option<MachineSource>,
    pub(crate) machine_count: usize,
    pub(crate) claim_order: ClaimOrder,
    pub(crate) sequence_start: SequenceStart,
    pub(crate) clock_kind: ClockKind,
    pub(crate) pacing: bool,
    pub(crate) borrow_ahead: Duration,
    pub(crate) timing: Option<Timing>,
    pub(crate) wait_for_store: bool,
    pub(crate) standby: bool,
    pub(crate) store_doubt: Option<bool>,
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
            pacing: true,
            borrow_ahead: Duration::ZERO,
            timing: None,
            wait_for_store: false,
            standby: false,
            store_doubt: None,
            doubtful_window: USUAL_DOUBTFUL_WINDOW,
        }
    }
}

impl Builder {
    /// The layout of the IDs, or one [region](IdMeta::in_region) of it. Each machine ID must be within the
    /// region. The region is the default range of a pool, and ordinals count from its first machine ID. A
    /// namespace is for one region. Default: [`IdMeta::MAX_PEAK`].
    pub fn layout(self, layout: IdMeta) -> Self {
        Self { layout, ..self }
    }

    /// The populator, which guards the position. Default: [`PopulatorKind::Atomic`].
    pub fn populator(self, populator: PopulatorKind) -> Self {
        Self { populator, ..self }
    }

    /// The genMethod field. Default: [`GenMethod::Embed`]. Ignored for layouts without the field.
    pub fn gen_method(self, gen_method: GenMethod) -> Self {
        Self { gen_method, ..self }
    }

    /// The version field. Default: 0; 1 makes IDs negative as signed numbers.
    pub fn version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// Maximum wait of one call. Waiting calls, blocking or async, are served in order of arrival; one that would
    /// wait longer fails at once. Default: 2 s.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// A clock other than the system's. A clock that does not advance by itself needs [`Drive::ByHand`].
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock: AnyClock::Other(clock),
            ..self
        }
    }

    /// The driver of renewals. Default: [`Drive::Thread`].
    pub fn drive(self, drive: Drive) -> Self {
        Self { drive, ..self }
    }

    /// The namespace. Machine IDs whose IDs may meet in one table must share it. Default: `default`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            ..self
        }
    }

    /// The folder of the state files; created if it does not exist. Default:
    /// [`default_state_dir`](crate::options::default_state_dir).
    pub fn state_dir(self, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            ..self
        }
    }

    /// Allows state on a network file system, with a warning. Two hosts that reach the same folder may
    /// then issue the same IDs. Default: it is refused, on Linux.
    pub fn allow_network_fs(self, allow_network_fs: bool) -> Self {
        Self {
            allow_network_fs,
            ..self
        }
    }

    /// The source of the machine ID. Required.
    pub fn machine(self, machine: MachineSource) -> Self {
        Self {
            machine: Some(machine),
            ..self
        }
    }

    /// The number of machine IDs that the service holds at once, from a pool. Capacity multiplies:
    /// threads are spread over the machine IDs, the IDs of each strictly increase, and losing one costs
    /// its share. IDs made in one tick on different machine IDs are not ordered. Default: 1.
    pub fn machine_count(self, machine_count: usize) -> Self {
        Self {
            machine_count,
            ..self
        }
    }

    /// The order in which a pool's free machine IDs are tried. Default: [`ClaimOrder::Stable`].
    pub fn claim_order(self, claim_order: ClaimOrder) -> Self {
        Self {
            claim_order,
            ..self
        }
    }

    /// First sequence number of a new tick. Default: `Zero`. With `Zero`, low traffic and a layout whose lowest
    /// field is the sequence, nearly every ID ends in the same digits, so `id % n` maps them to one shard.
    /// `Random(100)` spreads them, as Leaf does, at the cost of up to a hundred IDs of each tick's capacity.
    pub fn sequence_start(self, sequence_start: SequenceStart) -> Self {
        Self {
            sequence_start,
            ..self
        }
    }

    /// The clock that the time field follows, precise or coarse. Default: [`ClockKind::Precise`].
    pub fn clock_kind(self, clock_kind: ClockKind) -> Self {
        Self { clock_kind, ..self }
    }

    /// Releases a tick in slices of at most 4 ms: at full capacity no call then waits for the rest of a second. The
    /// first slice has an eighth of the tick for bursts. Later slices of the tick include what earlier ones left; the
    /// capacity stays the same. Without pacing the whole tick is available from its beginning. Default: yes.
    pub fn pacing(self, pacing: bool) -> Self {
        Self { pacing, ..self }
    }

    /// The time by which sequence numbers may be taken ahead of the clock: 0 to 10 s, rounded down to
    /// whole ticks. Bursts beyond the capacity of a tick are then served at once, with IDs whose time
    /// field leads by up to this time, until those ticks are used up. The window grows by this time, so
    /// that a restart repeats nothing. Default: 0.
    pub fn borrow_ahead(self, borrow_ahead: Duration) -> Self {
        Self {
            borrow_ahead,
            ..self
        }
    }

    /// Makes [`build`](Self::build) wait without limit for a store that does not answer, instead of 30
    /// s. Default: no.
    pub fn wait_for_store(self, wait_for_store: bool) -> Self {
        Self {
            wait_for_store,
            ..self
        }
    }

    /// Stands by while another process holds the machine ID, which must be
    /// [reserved](MachineSource::Reserved): [`build`](Self::build) then returns a service that is not ready and
    /// refuses calls with [`ErrorKind::NotHolder`](vesta_intf::ErrorKind::NotHolder). It takes the machine ID over 0.1
    /// to 0.2 s after the holder released it, or a little more than a window after the holder's last renewal.
    ///
    /// If all processes with the machine ID stand by in this way, with one genMethod and version, an ID that is asked
    /// for after another one was returned is larger, whichever of them made it. An ID costs a reading of the
    /// precise clocks. Default durations: [`Timing::STANDBY`]. Default: no.
    pub fn standby(self, standby: bool) -> Self {
        Self { standby, ..self }
    }

    /// Declares whether the store may forget acknowledged writes, where that cannot be detected. `true`: a proxy
    /// or a managed database with a lagging replica that may take over. `false`: its fail-over loses nothing.
    /// Default: as detected. With a store that may forget, the first ID after a claim comes about 7 s later.
    /// Once recorded in the namespace, only [`Leases::clear_doubt`](crate::lease::Leases::clear_doubt) ends this.
    pub fn store_doubt(self, may_forget: bool) -> Self {
        Self {
            store_doubt: Some(may_forget),
            ..self
        }
    }

    /// The window for a store that may forget: 10 to 60 s. If the store is unreachable, IDs keep
    /// flowing for this long, less up to 4 s for the renewal that was due. The first ID after a claim
    /// comes later by this time, less 3 s. Default: 10 s.
    pub fn doubtful_window(self, doubtful_window: Duration) -> Self {
        Self {
            doubtful_window,
            ..self
        }
    }

    /// Durations other than the store's own.
    pub fn timing(self, timing: Timing) -> Self {
        Self {
            timing: Some(timing),
            ..self
        }
    }
}
