//! The embedded service: a straight path from a call to an ID.

mod backlog;
mod turn;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use vesta_intf::{Field, FieldOrder, GenMethod, Id, IdError, IdMeta, IdRun, IdService, MakeId};

use crate::builder::Builder;
use crate::clock::Glance;
use crate::hint::unlikely;
use crate::lease::{HeldLease, Reserved, Slots};
use crate::number::number;
use crate::sequence::{Claim, Rules};
use crate::wait::Wait;
pub(crate) use backlog::{Backlog, Batch};
pub(crate) use turn::Turn;

/// Generates IDs inside this process. Share it behind an [`Arc`](std::sync::Arc) or the
/// [`global`](crate::global) module; one per process is enough.
///
/// Dropping it seals it, saves its position and releases its machine ID.
///
/// A process that forks must build the service in the child: parent and child would otherwise both issue
/// from the same positions. In the child, a service that was built before issues no ID
/// ([`IdError::Sealed`]), and touches neither the store nor its files. (A child of a raw `clone`, bypassing
/// the C library, issues none from the first new tick on.)
pub struct LocalIdService {
    pub(crate) settings: Builder,
    pub(crate) rules: Rules,
    /// The genMethod field of its IDs, shifted into place.
    pub(crate) gen_method: u64,
    pub(crate) machine_source: String,
    /// The duration of a window; `None` without a lease.
    pub(crate) window: Option<Duration>,
    pub(crate) slots: Slots,
    pub(crate) straight: Straight,
    pub(crate) backlog: Backlog,
    /// Positions that were taken and will never be issued.
    pub(crate) positions_lost: Arc<AtomicU64>,
}

/// The shortest way of a call for one ID. It is chosen when the service is built. With one machine ID and a clock whose
/// reading is a load or two, only the position and its end are left to look at.
///
/// A flag for each clock and not an enum: a `match` would jump through a table for each ID.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Straight {
    seconds: bool,
    coarse: bool,
    /// Bits of the ID below the position.
    shift: u8,
    /// ID at position 0 of the first lease, genMethod included.
    base: u64,
}

impl Straight {
    pub(crate) fn new(settings: &Builder, slots: &Slots, gen_method: u64) -> Self {
        let lease = slots.first().leases.first();
        let spec = settings.layout.spec();
        let shift = match spec.order {
            FieldOrder::TimeSeqMachine => Some(spec.machine_bits),
            FieldOrder::MachineTimeSeq => Some(0),
            FieldOrder::TimeMachineSeq => None, // splits the position
        };
        let clock = lease.ticks.cheap_clock();
        let exists = slots.iter().len() == 1 && shift.is_some();
        Self {
            seconds: exists && clock.reads_seconds(),
            coarse: exists && clock.reads_coarse(),
            shift: shift.unwrap_or(0),
            base: lease.base | gen_method,
        }
    }
}

/// Always one line, regardless of the format flags.
impl fmt::Debug for LocalIdService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Builder {
            layout, namespace, ..
        } = &self.settings;
        let source = &self.machine_source;
        write!(
            f,
            "LocalIdService({}, namespace {namespace}, {source})",
            layout.name()
        )
    }
}

impl LocalIdService {
    /// Builder of a service.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The same service with another value in the genMethod field of its IDs: a second entry point of
    /// one program. Both take positions of the same machine IDs, so their IDs never collide. The last of
    /// them to be dropped closes it; [`close`](Self::close) closes it for both.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the value does not fit the layout. A layout without the field accepts any value.
    pub fn with_gen_method(&self, gen_method: GenMethod) -> Result<Self, IdError> {
        let gen_method = in_place(&self.settings.layout, gen_method)?;
        Ok(Self {
            gen_method,
            straight: Straight::new(&self.settings, &self.slots, gen_method),
            settings: self.settings.clone(),
            rules: self.rules,
            machine_source: self.machine_source.clone(),
            window: self.window,
            slots: self.slots.clone(),
            backlog: Backlog::default(),
            positions_lost: Arc::clone(&self.positions_lost),
        })
    }

    /// The ID at a position of a lease.
    #[inline(always)]
    fn id_at(&self, lease: &HeldLease, position: u64) -> u64 {
        self.settings
            .layout
            .id_at(lease.base | self.gen_method, position)
    }

    /// The layout of the IDs.
    pub fn meta(&self) -> &IdMeta {
        &self.settings.layout
    }

    /// The current machine ID, or the first of them. It can change at runtime, if another process
    /// takes it over.
    pub fn machine(&self) -> u64 {
        self.slots.first().leases.current().machine
    }

    /// New IDs in one run of 1 to `want`, without waiting. A run of more than one leaves the last sixteenth of
    /// the positions reached by the clock to calls for one ID.
    ///
    /// # Errors
    /// As [`IdService::try_gen_id`]; [`IdError::OutOfRange`] if `want` is 0.
    pub fn try_gen_run(&self, want: u32) -> Result<IdRun, IdError> {
        IdError::check("count", want.into(), 1, u32::MAX.into())?;
        let (lease, claim) = self.slots.claim(want)?;
        Ok(self.run_at(lease, claim))
    }

    /// The IDs of a claim.
    pub(crate) fn run_at(&self, lease: &HeldLease, Claim { start, end }: Claim) -> IdRun {
        IdRun {
            first: self.id_at(lease, start),
            step: self.settings.layout.step(),
            count: u32::try_from(end - start).unwrap_or(u32::MAX), // a claim is never longer than requested
        }
    }

    /// A new ID, if the fast path has one. The usual case is separate and inlined into the caller: values
    /// shared with the other cases would go through memory.
    #[inline(always)]
    pub(crate) fn quick(&self) -> Option<u64> {
        let straight = &self.straight;
        let id = |position: u64| straight.base | position << straight.shift;
        // If another lease has followed it, this one is sealed and lets nothing pass.
        let lease = self.slots.first().leases.first();
        if straight.seconds {
            return lease.one_at(Glance::seconds(), id);
        }
        if straight.coarse {
            return lease.one_at(Glance::coarse(), id);
        }
        unlikely();
        self.quick_generally()
    }

    /// As [`quick`](Self::quick), with any number of machine IDs and leases, any clock and order of fields.
    #[inline(never)]
    fn quick_generally(&self) -> Option<u64> {
        let lease = self.slots.home().leases.current();
        lease.one(|position| self.id_at(lease, position))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn try_gen_id_slowly(&self) -> Result<u64, IdError> {
        if let Some(id) = self.quick_generally() {
            return Ok(id);
        }
        let (lease, claim) = self.slots.claim(1)?;
        Ok(self.id_at(lease, claim.start))
    }

    #[cold]
    #[inline(never)]
    fn wait_for_id(&self) -> Result<u64, IdError> {
        let mut turn = Turn::new(self);
        self.wait().until(|| turn.id())
    }

    /// Reserves a position for a waiting call.
    fn reserve(&self, soonest: Duration) -> Result<Reserved<'_>, IdError> {
        self.slots.reserve(soonest, self.settings.max_wait)
    }

    /// The duration of a slice.
    fn slice(&self) -> Duration {
        let tick = Duration::from_millis(self.settings.layout.spec().unit.millis());
        tick / (1 << self.rules.slice_bits())
    }

    /// The wait of one call.
    #[cold]
    pub(crate) fn wait(&self) -> Wait<'_, impl Fn() -> Option<Duration>> {
        let Builder {
            clock,
            drive,
            max_wait,
            ..
        } = &self.settings;
        let maintain = || self.maintain();
        Wait {
            clock,
            drive: *drive,
            max_wait: *max_wait,
            notify: None,
            maintain,
        }
    }

    /// Renews the lease if that is due and no thread does it, as with
    /// [`Drive::ByHand`](crate::options::Drive::ByHand). Returns the time until the next job.
    pub fn maintain(&self) -> Option<Duration> {
        self.slots.maintain()
    }

    /// Ends the service: no more IDs; saves the bound and releases the machine ID. If the store does
    /// not answer within two request timeouts, the bound stays where it is, which costs a successor
    /// at most one window. Calling it again does nothing.
    pub fn close(&self) {
        self.slots.close();
    }

    /// Counts positions that were taken and will never be issued.
    pub(crate) fn lost(&self, count: u64) {
        self.positions_lost.fetch_add(count, Ordering::Relaxed); // a statistic
    }

    /// Joins the wait queue for a batch that still needs this many IDs.
    pub(crate) fn enter_backlog(&self, ids: u64) -> Result<(), Duration> {
        let lines = number(self.slots.iter().count());
        let per_second = self
            .settings
            .layout
            .capacity_per_second()
            .saturating_mul(lines);
        self.backlog.enter(ids, per_second, self.settings.max_wait)
    }
}

/// The genMethod value shifted into its field; 0 in a layout without the field.
pub(crate) fn in_place(meta: &IdMeta, gen_method: GenMethod) -> Result<u64, IdError> {
    match meta.bits(Field::GenMethod) {
        0 => Ok(0),
        _ => meta.pack(&Id {
            gen_method: gen_method.value(),
            ..Id::default()
        }),
    }
}

/// Writes a run to the beginning of `out` and returns its number of IDs.
fn write(run: &IdRun, out: &mut [u64]) -> usize {
    let count = run.iter().len();
    run.write_to(&mut out[..count]);
    count
}

/// Sorts a batch that came from several machine IDs, at once or one after another.
pub(crate) fn put_in_order(ids: &mut [u64]) {
    if !ids.is_sorted() {
        ids.sort_unstable();
    }
}

vesta_intf::inherent_calls!(LocalIdService);

impl IdService for LocalIdService {
    #[inline(always)] // an error is 48 bytes: an ID returned next to it would go through memory
    fn gen_id(&self) -> Result<u64, IdError> {
        match self.quick() {
            Some(id) => Ok(id),
            None => self.wait_for_id(),
        }
    }

    #[inline(always)] // as `gen_id`
    fn try_gen_id(&self) -> Result<u64, IdError> {
        match self.quick() {
            Some(id) => Ok(id),
            None => self.try_gen_id_slowly(),
        }
    }

    fn gen_ids(&self, out: &mut [u64]) -> Result<(), IdError> {
        let (mut filled, mut runs) = (0, 0);
        let mut batch = Batch::new(self, number(out.len()));
        let mut attempt = || {
            batch.fill(|run| {
                filled += write(&run, &mut out[filled..]);
                runs += 1;
            })
        };
        match attempt() {
            Ok(filled) => filled,
            Err(_) => self.wait().until(attempt)?,
        }?;
        if runs > 1 {
            put_in_order(out);
        }
        Ok(())
    }

    fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        let mut filled = 0;
        while filled < out.len() {
            let want = u32::try_from(out.len() - filled).unwrap_or(u32::MAX);
            match self.try_gen_run(want) {
                Ok(run) => filled += write(&run, &mut out[filled..]),
                Err(IdError::NotReady(_)) if filled > 0 => break,
                Err(error) => {
                    self.lost(number(filled));
                    return Err(error);
                }
            }
        }
        put_in_order(&mut out[..filled]);
        Ok(filled)
    }

    fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        self.settings.layout.explaining(raw).unpack(raw)
    }

    fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        let lease = self.slots.first().leases.current();
        let own = self.settings.layout.unpack(lease.base | self.gen_method)?;
        let id_type = parts.id_type.unwrap_or(own.id_type);
        let meta = self.settings.layout.of_type_value(id_type)?;
        meta.pack(&Id {
            gen_method: parts.gen_method.unwrap_or(own.gen_method),
            machine: parts.machine.unwrap_or(own.machine),
            seq: parts.seq,
            time: parts.time,
            id_type,
            version: parts.version.unwrap_or(own.version),
        })
    }

    fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        Ok(self.settings.layout.moment_of(time)?.to_system_time())
    }
}
