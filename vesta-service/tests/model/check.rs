//! What must hold after every operation, told by the set of everything issued and by what the store saw.

use std::time::Duration;

use vesta_intf::Field;
use vesta_service::{
    Clock as _, ErrorKind, Id, IdError, NotReady, NotReadyReason, SequenceStart, UnixMillis,
};

use crate::store::Window;
use crate::world::{Running, World};

/// What is wrong, if something is.
pub(crate) type Verdict = Result<(), String>;

/// How far issued time may run ahead of the wall clock.
const MAX_LEAD: Duration = Duration::from_secs(5);

/// What the tests went through.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) operations: u64,
    pub(crate) ids: u64,
    pub(crate) started: u64,
    pub(crate) start_refused: u64,
    pub(crate) used_up: u64,
    pub(crate) awaiting: u64,
    pub(crate) behind: u64,
    pub(crate) exhausted: u64,
    pub(crate) sealed: u64,
    pub(crate) retried: u64,
    /// Of these, how often it took another millisecond.
    pub(crate) retried_again: u64,
    pub(crate) bound_awaited: u64,
    /// In attempts.
    pub(crate) longest_await: u64,
    /// Claims of a machine ID that somebody had before.
    pub(crate) handovers: u64,
    pub(crate) releases: u64,
    pub(crate) releases_exact: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        self.operations += other.operations;
        self.ids += other.ids;
        self.started += other.started;
        self.start_refused += other.start_refused;
        self.used_up += other.used_up;
        self.awaiting += other.awaiting;
        self.behind += other.behind;
        self.exhausted += other.exhausted;
        self.sealed += other.sealed;
        self.retried += other.retried;
        self.retried_again += other.retried_again;
        self.bound_awaited += other.bound_awaited;
        self.longest_await = self.longest_await.max(other.longest_await);
        self.handovers += other.handovers;
        self.releases += other.releases;
        self.releases_exact += other.releases_exact;
    }
}

impl World {
    fn seq_bits(&self) -> u8 {
        self.setting.layout.spec().seq_bits
    }

    /// One past the last position.
    pub(crate) fn end(&self) -> u64 {
        (self.setting.layout.max(Field::Time) + 1) << self.seq_bits()
    }

    /// The tick of a moment, also of one beyond the layout.
    fn tick(&self, moment: UnixMillis) -> u64 {
        let spec = self.setting.layout.spec();
        moment.0.saturating_sub(spec.epoch.0) / spec.unit.millis()
    }

    /// The window of this service that a position lies in.
    fn window(&self, service: usize, machine: u64, position: u64) -> Option<Window> {
        let windows = self.shared.windows.lock();
        let mine = windows.get(&machine)?.iter().filter(|window| window.service == service);
        mine.copied().find(|window| {
            let below = window.released_at.unwrap_or(window.told).min(window.told);
            (window.base..below).contains(&position)
        })
    }

    /// Checks new IDs, in the order in which they came. `at_once` if no time passed meanwhile.
    pub(crate) fn check_issued(&mut self, host: usize, ids: &[u64], at_once: bool) -> Verdict {
        let layout = self.setting.layout;
        let wall = self.hosts[host].clock.wall();
        for id in ids {
            let parts = layout.unpack(*id).map_err(|error| error.to_string())?;
            let Id { machine, time, seq, .. } = parts;
            let position = time << self.seq_bits() | seq;
            let told = |flaw: &str| Err(format!("{id} = {parts:?} at {wall}: {flaw}"));
            if !self.issued.insert(*id) {
                return told("issued before");
            }
            if (parts.version, parts.gen_method, parts.id_type) != (0, 0, layout.id_type()) {
                return told("another kind of ID");
            }
            let stored = self.shared.record(machine).map_or(0, |record| record.bound);
            if position >= stored {
                return told(&format!("not below the stored bound {stored}"));
            }
            let Some(running) = &self.hosts[host].running else { return told("by nobody") };
            let service = running.link.service;
            let Some(window) = self.window(service, machine, position) else {
                return told("in no window of this service");
            };
            let in_window = self.highest.get(&(machine, window.epoch)).copied();
            // Of two lines one can take over the machine ID of the other, while nobody renews it.
            let last = match running.lines {
                1 => running.highest.get(&machine).copied(),
                _ => in_window,
            };
            if last.is_some_and(|last| position <= last) {
                return told("not above the one before");
            }
            let next = in_window.map_or(window.base, |last| last + 1);
            let begins = seq < self.begins_below();
            if position != next && !begins && !self.lossy.contains(&service) {
                return told(&format!("positions from {next} on were left out"));
            }
            let shown = layout.moment_of(time).map_err(|error| error.to_string())?;
            // In the first tick of a layout every moment before its epoch looks like the first.
            if shown.0 > wall.0 + 5_000 && time > 0 {
                return told("more than 5 s ahead of the clock");
            }
            if at_once && time < self.tick(wall) && !self.suspects(host) {
                return told("behind the clock");
            }
            self.highest.insert((machine, window.epoch), position);
            if let Some(Running { highest, .. }) = &mut self.hosts[host].running {
                highest.insert(machine, position);
            }
            self.counts.ids += 1;
        }
        Ok(())
    }

    fn begins_below(&self) -> u64 {
        match self.setting.start {
            SequenceStart::Zero => 1,
            SequenceStart::Random(below) => below.into(),
        }
    }

    fn suspects(&self, host: usize) -> bool {
        let running = self.hosts[host].running.as_ref();
        running.is_some_and(|running| running.subject.service.status().clock_suspect)
    }

    /// The window that a service with one machine ID now has, if nobody took it away.
    fn current_window(&self, host: usize) -> Option<(u64, Window)> {
        let running = self.hosts[host].running.as_ref()?;
        let status = running.subject.service.status();
        let windows = self.shared.windows.lock();
        let window = *windows.get(&status.machine)?.last()?;
        let owner = self.shared.record(status.machine)?.owner;
        let mine = window.service == running.link.service && window.epoch == status.epoch;
        (mine && window.owner == owner).then_some((status.machine, window))
    }

    /// Whether its machine ID was given up, and another is not found yet.
    fn is_claiming(&self, host: usize) -> bool {
        let running = self.hosts[host].running.as_ref();
        let reason = running.and_then(|r| r.subject.service.status().not_ready_because);
        reason.is_some_and(|reason| reason.starts_with("another machine ID is being claimed"))
    }

    pub(crate) fn holds_its_machine(&self, host: usize) -> bool {
        self.current_window(host).is_some() && !self.is_claiming(host)
    }

    /// Whether a refusal is for the reason it names.
    pub(crate) fn check_refused(&mut self, host: usize, error: &IdError) -> Verdict {
        let counts = &mut self.counts;
        *match error {
            IdError::NotReady(NotReady { why: NotReadyReason::SequenceUsedUp, .. }) => {
                &mut counts.used_up
            }
            IdError::NotReady(NotReady { why: NotReadyReason::AwaitingLease, .. }) => {
                &mut counts.awaiting
            }
            IdError::NotReady(NotReady { why: NotReadyReason::ClockBehind, .. }) => {
                &mut counts.behind
            }
            IdError::TimeExhausted => &mut counts.exhausted,
            IdError::Sealed { .. } => &mut counts.sealed,
            other => return Err(format!("refused: {other}")),
        } += 1;
        let Some(running) = &self.hosts[host].running else { return Ok(()) };
        let ended = running.stopped || running.link.has_failed_for_good();
        if let IdError::Sealed { reason } = error {
            return if ended && !reason.is_empty() {
                Ok(())
            } else {
                Err(format!("sealed because `{reason}`"))
            };
        }
        if running.stopped {
            return Err(format!("stopped, and refused because {error}"));
        }
        let status = running.subject.service.status();
        // What follows needs to know where the line stands and what its clock shows.
        let known = running.lines == 1 && !self.lossy.contains(&running.link.service);
        let Some((machine, window)) = self.current_window(host).filter(|_| known) else {
            return Ok(());
        };
        if status.clock_suspect || status.sealed.is_some() {
            return Ok(());
        }
        if self.is_claiming(host) {
            let waits = error.kind() == ErrorKind::AwaitingLease;
            return if waits {
                Ok(())
            } else {
                Err(format!("claiming, and refused because {error}"))
            };
        }
        let wall = self.hosts[host].clock.wall();
        let effective = Duration::from_millis(wall.0) + status.lead;
        let tick = self.tick(UnixMillis(u64::try_from(effective.as_millis()).unwrap()));
        let seq_bits = self.seq_bits();
        let at = move |tick: u64| u128::from(tick) << seq_bits;
        let issued = self.highest.get(&(machine, window.epoch));
        let next = u128::from(issued.map_or(window.base, |last| last + 1));
        let used_up = next >= at(tick + 1);
        let justified = match error {
            IdError::NotReady(NotReady { why: NotReadyReason::ClockBehind, .. }) => {
                status.lead > MAX_LEAD
            }
            IdError::NotReady(NotReady { why: NotReadyReason::SequenceUsedUp, .. }) => {
                // A grant begins where the clock was, not where the record ended.
                used_up || issued.is_none()
            }
            IdError::NotReady(NotReady { why: NotReadyReason::AwaitingLease, .. }) => {
                let begins = at(tick) + u128::from(self.begins_below() - 1);
                !used_up && next.max(begins) >= window.told.into()
            }
            _ => next.max(at(tick)) >= self.end().into(),
        };
        match justified {
            true => Ok(()),
            false => Err(format!("{error:?} at {wall}, next {next}, {window:?}, {status:?}")),
        }
    }

    /// A release gives back exactly what was not issued.
    pub(crate) fn check_releases(&mut self) -> Verdict {
        for (machine, window) in self.shared.take_changes() {
            let Some(released_at) = window.released_at else {
                self.counts.handovers += u64::from(window.epoch > 1);
                continue;
            };
            self.counts.releases += 1;
            let issued = self.highest.get(&(machine, window.epoch)).map(|last| last + 1);
            let exact = issued == Some(released_at);
            self.counts.releases_exact += u64::from(exact);
            let may_differ = issued.is_none() || self.lossy.contains(&window.service);
            if released_at < issued.unwrap_or(window.base) || !exact && !may_differ {
                return Err(format!("machine {machine}: {window:?}, but issued below {issued:?}"));
            }
        }
        Ok(())
    }
}
