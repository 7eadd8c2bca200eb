//! The embedded service: from a call to an ID in a straight line.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use vesta_intf::{
    ErrorKind, Hold, HoldReason, Id, IdError, IdMeta, IdRun, IdService, MakeId, UnixMillis,
};

use crate::builder::Builder;
use crate::clock::{AnyClock, Clock as _, MAX_LEAD, Reading};
use crate::grant::Grant;
use crate::lease::keeper::{Keeper, Line};
use crate::lease::timing::RETRY_AFTER;
use crate::populator::PopulatorKind;
use crate::sequence::{Claim, Rules};

/// Makes IDs inside this process. Share it behind an [`Arc`] or the
/// [`global`](crate::global) module; one per process is enough.
///
/// Dropping it seals it, saves how far it came and gives its machine ID back.
///
/// A process that forks must build the service in the child: parent and child would otherwise both
/// issue from one line.
#[derive(Debug)]
pub struct LocalIdService {
    parts: Parts,
}

/// What a service consists of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) meta: IdMeta,
    pub(crate) rules: Rules,
    pub(crate) populator: PopulatorKind,
    pub(crate) max_wait: Duration,
    pub(crate) clock: AnyClock,
    pub(crate) namespace: String,
    pub(crate) described: String,
    /// The length of a window; `None` without a lease.
    pub(crate) window: Option<Duration>,
    pub(crate) line: Arc<Line>,
    /// `None` without a lease.
    pub(crate) keeper: Option<Keeper>,
}

/// How a service is doing: for health checks, metrics and people.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// The machine ID now held.
    pub machine: u64,
    /// Where it came from.
    pub machine_source: String,
    /// The epoch of its claim; 0 without a lease.
    pub epoch: u64,
    /// The namespace.
    pub namespace: String,
    /// How the position is guarded.
    pub populator: PopulatorKind,
    /// Whether IDs can be expected for the next seconds.
    pub ready: bool,
    /// Why not.
    pub not_ready_because: Option<String>,
    /// How long IDs can be made without hearing from the store; `Duration::MAX` without a lease.
    pub window_left: Duration,
    /// How far issued time runs ahead of the wall clock.
    pub lead: Duration,
    /// Whether the wall clock jumped so far ahead that it is not followed.
    pub clock_suspect: bool,
    /// The moment from which on the layout has no more IDs.
    pub layout_ends: UnixMillis,
    /// How long it is until then.
    pub layout_left: Duration,
    /// Renewals of the bound that were acknowledged.
    pub renewals_ok: u64,
    /// Renewals that were not answered.
    pub renewals_failed: u64,
    /// How long ago the bound was last renewed or claimed.
    pub last_renewal_age: Duration,
    /// How often another process took the machine ID over.
    pub fenced_total: u64,
    /// Why no more IDs will ever be made, if that is so. Only a restart helps.
    pub sealed: Option<String>,
}

/// A service is no longer ready with less than this left in its window, or a fifth of the window.
const NOT_READY_BELOW: Duration = Duration::from_secs(5);

impl LocalIdService {
    /// How a service is put together.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(parts: Parts) -> Self {
        let service = Self { parts };
        let now = millis(service.parts.clock.monotonic());
        service.parts.line.counters.renewed_at.store(now, Ordering::Relaxed);
        service
    }

    /// The layout of the IDs.
    pub fn meta(&self) -> &IdMeta {
        &self.parts.meta
    }

    /// The machine ID now held. It can change while running, if another process takes it over.
    pub fn machine(&self) -> u64 {
        self.parts.line.current().machine()
    }

    /// New IDs in one run of 1 to `want`, without waiting.
    ///
    /// # Errors
    /// As [`IdService::try_gen_id`]; [`IdError::OutOfRange`] if `want` is 0.
    pub fn try_gen_run(&self, want: u32) -> Result<IdRun, IdError> {
        IdError::check("count", want.into(), 1, u32::MAX.into())?;
        let (grant, Claim { start, end }) = self.claim(want)?;
        let first = self.parts.meta.id_at(grant.base(), start);
        // A claim is never longer than what was wanted.
        let count = u32::try_from(end - start).unwrap_or(want);
        Ok(IdRun { first, step: self.parts.meta.step(), count })
    }

    #[inline]
    fn claim(&self, want: u32) -> Result<(&Grant, Claim), IdError> {
        let grant = self.parts.line.current();
        match grant.claim(want) {
            Ok(claim) => Ok((grant, claim)),
            Err(error) => Err(self.unless_followed(grant, error)),
        }
    }

    /// A grant that was sealed because its machine ID was lost will have a successor.
    #[cold]
    fn unless_followed(&self, grant: &Grant, error: IdError) -> IdError {
        let again =
            IdError::Hold(Hold { retry_after: RETRY_AFTER, why: HoldReason::AwaitingLease });
        if error.kind() == ErrorKind::ClockBehind {
            self.parts.line.wake_keeper(); // with a pool, another machine ID ends the wait
        }
        match error {
            IdError::Sealed { .. } if !std::ptr::eq(grant, self.parts.line.current()) => again,
            IdError::Sealed { .. } if self.parts.line.will_follow() => again,
            error => error,
        }
    }

    /// Repeats an attempt until it succeeds, fails for good, or can no longer succeed in time.
    #[cold]
    fn wait_for<T>(
        &self,
        first: IdError,
        mut attempt: impl FnMut() -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let deadline = self.parts.clock.monotonic().saturating_add(self.parts.max_wait);
        let mut error = first;
        loop {
            let IdError::Hold(hold) = error else { return Err(error) };
            if self.parts.clock.monotonic().saturating_add(hold.retry_after) > deadline {
                return Err(error);
            }
            self.maintain();
            if !hold.retry_after.is_zero() {
                self.parts.clock.park(hold.retry_after);
            }
            match attempt() {
                Ok(value) => return Ok(value),
                Err(next) => error = next,
            }
        }
    }

    /// Renews the lease if that is due and no thread does it, which is so with a clock of one's own.
    /// Returns how long there is nothing more to do.
    pub fn maintain(&self) -> Option<Duration> {
        self.parts.keeper.as_ref()?.maintain(&self.parts.line)
    }

    /// Ends the service: no more IDs, the bound is saved and the machine ID given back. If the store
    /// does not answer within two request time-outs, the bound is left where it is, which costs a
    /// successor at most one window. Calling it again does nothing.
    pub fn close(&self) {
        let Parts { line, keeper, .. } = &self.parts;
        match keeper {
            Some(keeper) => keeper.close(line),
            None => {
                line.request_stop();
                line.current().seal("it was shut down");
            }
        }
    }

    /// How the service is doing.
    pub fn status(&self) -> Status {
        let Parts { meta, rules, line, clock, .. } = &self.parts;
        let grant = line.current();
        let ended = grant.sealed_reason().map(str::to_owned);
        let sealed = ended.clone().filter(|_| !line.will_follow());
        let wall = clock.wall();
        let window_left = match self.parts.window {
            Some(_) => grant.ticks().distance(rules.tick(grant.limit())),
            None => Duration::MAX,
        };
        let Reading { lead, suspect, .. } = grant.ticks().read();
        let low = self.parts.window.map_or(Duration::ZERO, |w| (w / 5).min(NOT_READY_BELOW));
        let not_ready_because = if let Some(reason) = &sealed {
            Some(format!("the generator has stopped: {reason}"))
        } else if let Some(reason) = &ended {
            Some(format!("another machine ID is being claimed: {reason}"))
        } else if lead > MAX_LEAD {
            Some(format!("the clock stands {} s behind IDs already issued", lead.as_secs()))
        } else if window_left < low {
            Some(format!(
                "the store has not confirmed a window; {} ms are left",
                millis(window_left)
            ))
        } else if wall >= meta.end() {
            Some("the layout's time field has run out".into())
        } else {
            None
        };
        let counters = &line.counters;
        let renewed_at = counters.renewed_at.load(Ordering::Relaxed);
        let age = millis(clock.monotonic()).saturating_sub(renewed_at);
        Status {
            machine: grant.machine(),
            machine_source: self.parts.described.clone(),
            epoch: grant.epoch(),
            namespace: self.parts.namespace.clone(),
            populator: self.parts.populator,
            ready: not_ready_because.is_none(),
            not_ready_because,
            window_left,
            lead,
            clock_suspect: suspect,
            layout_ends: meta.end(),
            layout_left: Duration::from_millis(meta.end().since(wall).unwrap_or(0)),
            renewals_ok: counters.renewals_ok.load(Ordering::Relaxed),
            renewals_failed: counters.renewals_failed.load(Ordering::Relaxed),
            last_renewal_age: Duration::from_millis(age),
            fenced_total: counters.fenced.load(Ordering::Relaxed),
            sealed,
        }
    }

    #[cfg(feature = "async")]
    pub(crate) fn max_wait(&self) -> Duration {
        self.parts.max_wait
    }

    #[cfg(feature = "async")]
    pub(crate) fn monotonic(&self) -> Duration {
        self.parts.clock.monotonic()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl IdService for LocalIdService {
    #[inline]
    fn gen_id(&self) -> Result<u64, IdError> {
        match self.try_gen_id() {
            Ok(id) => Ok(id),
            Err(error) => self.wait_for(error, || self.try_gen_id()),
        }
    }

    #[inline]
    fn try_gen_id(&self) -> Result<u64, IdError> {
        let (grant, claim) = self.claim(1)?;
        Ok(self.parts.meta.id_at(grant.base(), claim.start))
    }

    fn gen_ids(&self, out: &mut [u64]) -> Result<(), IdError> {
        let mut filled = 0;
        let mut attempt = || {
            while filled < out.len() {
                let end = filled + self.try_gen_ids(&mut out[filled..])?;
                // After a change of machine ID the IDs can be smaller: the batch then begins anew.
                if filled > 0 && out[filled] < out[filled - 1] {
                    out.copy_within(filled..end, 0);
                    filled = end - filled;
                } else {
                    filled = end;
                }
            }
            Ok(())
        };
        match attempt() {
            Ok(()) => Ok(()),
            Err(error) => self.wait_for(error, attempt),
        }
    }

    fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        let mut filled = 0;
        while filled < out.len() {
            let want = u32::try_from(out.len() - filled).unwrap_or(u32::MAX);
            let run = match self.try_gen_run(want) {
                Ok(run) => run,
                Err(IdError::Hold(_)) if filled > 0 => break,
                Err(error) => return Err(error),
            };
            if filled > 0 && run.first < out[filled - 1] {
                filled = 0; // as in `gen_ids`
            }
            let end = filled + run.iter().len();
            run.write_to(&mut out[filled..end]);
            filled = end;
        }
        Ok(filled)
    }

    fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        self.parts.meta.explaining(raw).unpack(raw)
    }

    fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        let grant = self.parts.line.current();
        let own = self.parts.meta.unpack(grant.base())?;
        let id_type = parts.id_type.unwrap_or(own.id_type);
        let meta = self.parts.meta.of_type_value(id_type)?;
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
        Ok(self.parts.meta.moment_of(time)?.to_system_time())
    }
}

impl Drop for LocalIdService {
    fn drop(&mut self) {
        self.close();
    }
}
