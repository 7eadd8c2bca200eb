//! The hosts, the store and the set of everything issued; what must hold is in `check`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vesta_intf::Field;
use vesta_service::{
    BuildError, ClaimError, Clock as _, Drive, IdError, IdService as _, LocalIdService,
    MachineSource, ManualClock, NotReady, NotReadyReason, UnixMillis,
};

use crate::check::{Counts, Verdict};
use crate::operation::{HOSTS, Operation, START, Setting, Source};
use crate::planted::{Flaw, Subject};
use crate::store::{Link, NAMESPACE, Shared};

pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct Running {
    pub(crate) subject: Subject,
    pub(crate) link: Arc<Link>,
    /// The highest position issued, by machine ID.
    pub(crate) highest: HashMap<u64, u64>,
    pub(crate) lines: usize,
    pub(crate) stopped: bool,
}

pub(crate) struct Host {
    pub(crate) clock: ManualClock,
    pub(crate) running: Option<Running>,
    folder: Option<tempfile::TempDir>,
}

pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) services: usize,
    /// Everything ever issued, by anybody.
    pub(crate) issued: HashSet<u64>,
    /// The highest position issued, by machine ID and epoch.
    pub(crate) highest: HashMap<(u64, u64), u64>,
    /// The services that lost positions in batches that failed.
    pub(crate) lossy: HashSet<usize>,
    pub(crate) counts: Counts,
}

impl World {
    pub(crate) fn new(setting: Setting, flaw: Flaw) -> Self {
        let shared = Arc::new(Shared::new(flaw, setting.may_forget));
        let host = |_| Host {
            clock: ManualClock::at(START),
            running: None,
            folder: setting.on_disk.then(|| tempfile::tempdir().unwrap()),
        };
        Self {
            setting,
            shared,
            hosts: (0..HOSTS).map(host).collect(),
            services: 0,
            issued: HashSet::new(),
            highest: HashMap::new(),
            lossy: HashSet::new(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn run(&mut self, operations: &[Operation]) -> Verdict {
        for host in 0..HOSTS {
            self.carry_out(Operation::Start(host, Source::Pool, false))?;
        }
        operations.iter().try_for_each(|operation| self.carry_out(*operation))
    }

    fn carry_out(&mut self, operation: Operation) -> Verdict {
        self.counts.operations += 1;
        match operation {
            Operation::TryOne(host) => self.try_one(host)?,
            Operation::TryMany(host, want) => self.try_many(host, want.into())?,
            Operation::TryRun(host, want) => drop(self.try_run(host, want.into())?),
            Operation::One(host) => self.many(host, 1)?,
            Operation::Many(host, want) => self.many(host, want.into())?,
            Operation::Retry(host) => self.retry(host)?,
            Operation::Maintain(host) => self.maintain(host),
            Operation::Pass(time) => self.hosts.iter().for_each(|host| host.clock.advance(time)),
            Operation::Run(host, time) => self.keep_running(host, time),
            Operation::Drift(host, time) => self.hosts[host].clock.advance(time),
            Operation::Step(host, by) => {
                let clock = &self.hosts[host].clock;
                clock.set_wall(UnixMillis(clock.wall().0.saturating_add_signed(by)));
            }
            Operation::Fate(host, fate) => {
                if let Some(running) = &self.hosts[host].running {
                    running.link.fates.lock().push_back(fate);
                }
            }
            Operation::Cut(host, cut) => {
                if let Some(running) = &self.hosts[host].running {
                    running.link.cut.store(cut, Ordering::Relaxed);
                }
            }
            Operation::Deliver(which) => self.shared.deliver(which),
            Operation::Stop(host) => {
                if let Some(running) = &mut self.hosts[host].running {
                    running.stopped = true;
                    running.subject.service.close();
                    self.try_one(host)?; // refused, now and later
                }
            }
            Operation::Crash(host) => {
                if let Some(running) = self.hosts[host].running.take() {
                    // Nothing that it does from now on is heard of.
                    running.link.cut.store(true, Ordering::Relaxed);
                }
            }
            Operation::Start(host, source, forgets) => self.start(host, source, forgets)?,
            Operation::RaiseFloor(seconds) => self.raise_floor(seconds.into()),
        }
        self.check_releases()?;
        match self.shared.broken.lock().take() {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }

    fn start(&mut self, at: usize, source: Source, forgets: bool) -> Verdict {
        let host = &mut self.hosts[at];
        if host.running.as_ref().is_some_and(|running| !running.stopped) {
            return Ok(());
        }
        host.running = None;
        if forgets && host.folder.is_some() {
            host.folder = Some(tempfile::tempdir().unwrap());
        }
        let link = Arc::new(Link::new(
            &self.shared,
            self.services,
            host.clock.clone(),
            self.setting.timing(),
        ));
        self.services += 1;
        let Setting { layout, populator, start, last_machine, .. } = self.setting;
        let store = link.clone();
        let (machine, lines) = match source {
            Source::Pool => (MachineSource::Pool { store, range: Some(0..=last_machine) }, 1),
            Source::TwoOfThePool => {
                (MachineSource::Pool { store, range: Some(0..=last_machine) }, 2)
            }
            Source::Reserved(id) => (MachineSource::Reserved { store, id }, 1),
        };
        let built = LocalIdService::builder()
            .layout(layout)
            .populator(populator)
            .sequence_start(start)
            .machine(machine)
            .machine_count(lines)
            .namespace(NAMESPACE)
            .max_wait(MAX_WAIT)
            .timing(self.setting.timing())
            .clock(Arc::new(host.clock.clone()))
            .drive(Drive::ByHand)
            // A folder that cannot be made: this host remembers nothing.
            .state_dir(host.folder.as_ref().map_or("/dev/null/none".as_ref(), |f| f.path()))
            .build();
        match built {
            Ok(service) => {
                self.counts.started += 1;
                let subject = Subject::new(service, self.shared.flaw);
                let highest = HashMap::new();
                host.running = Some(Running { subject, link, highest, lines, stopped: false });
                Ok(())
            }
            Err(BuildError::Claim(error)) => match error {
                ClaimError::Exhausted { .. } | ClaimError::ClockBehind { .. } => {
                    self.counts.start_refused += 1;
                    Ok(())
                }
                ClaimError::Time(_) if self.outside(at) => Ok(()),
                ClaimError::Time(IdError::TimeExhausted) if self.is_used_up() => Ok(()),
                ClaimError::Store { .. } if self.shared.flaw != Flaw::Nothing => Ok(()),
                error => Err(format!("start: {error}")),
            },
            Err(error) => Err(format!("start: {error}")),
        }
    }

    /// Whether the clock stands before the layout's epoch, or near its end.
    fn outside(&self, host: usize) -> bool {
        let wall = self.hosts[host].clock.wall().0;
        let layout = &self.setting.layout;
        wall < layout.spec().epoch.0 || wall + 20_000 >= layout.end().0
    }

    /// Whether the positions of a machine ID are reserved up to the last tick.
    fn is_used_up(&self) -> bool {
        let last = self.end() - (1 << self.setting.layout.spec().seq_bits);
        (0..=self.setting.layout.max(Field::Machine))
            .any(|machine| self.shared.record(machine).is_some_and(|r| r.bound >= last))
    }

    fn raise_floor(&mut self, seconds: u64) {
        let moment = UnixMillis(START.0 + 1_000 * seconds);
        let Ok(tick) = self.setting.layout.tick_at(moment) else { return };
        let floor = tick << self.setting.layout.spec().seq_bits;
        self.shared.raise_floor(floor);
    }

    fn maintain(&self, host: usize) {
        if let Some(running) = &self.hosts[host].running {
            running.subject.service.maintain();
        }
    }

    /// Lets time pass as it does for a service with a keeper: it renews whenever that is due.
    fn keep_running(&self, host: usize, time: Duration) {
        let clock = &self.hosts[host].clock;
        let until = clock.monotonic() + time;
        while clock.monotonic() < until {
            let left = until - clock.monotonic();
            let due = match &self.hosts[host].running {
                Some(running) => running.subject.service.maintain(),
                None => None,
            };
            let due = due.unwrap_or(left).max(Duration::from_millis(1));
            clock.advance(due.min(until.saturating_sub(clock.monotonic())));
        }
        self.maintain(host);
    }

    fn try_one(&mut self, host: usize) -> Verdict {
        let Some(running) = &self.hosts[host].running else { return Ok(()) };
        if self.shared.flaw != Flaw::Nothing {
            return self.try_run(host, 1).map(drop);
        }
        match running.subject.service.try_gen_id() {
            Ok(id) => self.check_issued(host, &[id], true),
            Err(error) => self.check_refused(host, &error),
        }
    }

    pub(crate) fn try_run(
        &mut self,
        host: usize,
        want: u32,
    ) -> Result<Option<Result<(), NotReady>>, String> {
        let Some(running) = &self.hosts[host].running else { return Ok(None) };
        match running.subject.try_run(want) {
            Ok(run) => {
                if run.count == 0 || run.count > want {
                    return Err(format!("{run:?} for {want}"));
                }
                self.check_issued(host, &run.iter().collect::<Vec<_>>(), true)?;
                Ok(Some(Ok(())))
            }
            Err(error) => {
                self.check_refused(host, &error)?;
                Ok(match error {
                    IdError::NotReady(hold) => Some(Err(hold)),
                    _ => None,
                })
            }
        }
    }

    fn try_many(&mut self, host: usize, want: usize) -> Verdict {
        let Some(running) = &self.hosts[host].running else { return Ok(()) };
        let mut out = vec![0; want];
        match running.subject.service.try_gen_ids(&mut out) {
            Ok(count) => self.check_issued(host, &out[..count], true),
            Err(error) => {
                self.note_losses(host);
                self.check_refused(host, &error)
            }
        }
    }

    /// A call that may wait, and then keeps the lease alive itself.
    fn many(&mut self, host: usize, want: usize) -> Verdict {
        let Host { clock, running: Some(running), .. } = &self.hosts[host] else { return Ok(()) };
        let (before, requests) = (clock.monotonic(), running.link.requests());
        let mut out = vec![0; want];
        let answer = match want {
            1 => running.subject.service.gen_id().map(|id| out[0] = id),
            _ => running.subject.service.gen_ids(&mut out),
        };
        let waited = clock.monotonic() - before;
        if waited > MAX_WAIT && running.link.requests() == requests {
            return Err(format!("waited {waited:?}, longer than {MAX_WAIT:?}"));
        }
        match answer {
            Ok(()) => self.check_issued(host, &out, false),
            Err(error) => {
                self.note_losses(host);
                self.check_refused(host, &error)
            }
        }
    }

    fn note_losses(&mut self, host: usize) {
        if let Some(running) = &self.hosts[host].running
            && running.subject.service.status().positions_lost_total > 0
        {
            self.lossy.insert(running.link.service);
        }
    }

    /// One ID; if there is none, whether it makes sense to come back at the time that was named.
    fn retry(&mut self, host: usize) -> Verdict {
        let Some(Err(hold)) = self.try_run(host, 1)? else { return Ok(()) };
        let Host { clock, running: Some(running), .. } = &self.hosts[host] else { return Ok(()) };
        if running.lines > 1 {
            return Ok(()); // another line may be the one to wait for
        }
        let (clock, status) = (clock.clone(), running.subject.service.status());
        if hold.why == NotReadyReason::AwaitingLease {
            return self.await_bound(host, hold);
        }
        let never_early = status.lead.is_zero() && !status.clock_suspect
            || hold.why == NotReadyReason::ClockBehind;
        let mut left = hold.retry_after;
        if never_early && let Some(before) = left.checked_sub(Duration::from_millis(1)) {
            clock.advance(before);
            left -= before;
            match self.try_run(host, 1)? {
                Some(Err(still)) if still.why == hold.why => {}
                other => return Err(format!("{hold:?}, but 1 ms earlier {other:?}")),
            }
        }
        clock.advance(left);
        self.counts.retried += 1;
        match self.try_run(host, 1)? {
            Some(Err(again)) if again.why == hold.why => {
                // The wall clock is right to the millisecond, and so is a lead told by it.
                if never_early && hold.why == NotReadyReason::SequenceUsedUp
                    || again.retry_after > Duration::from_millis(2)
                {
                    return Err(format!("{hold:?}, and then {again:?}"));
                }
                self.counts.retried_again += 1;
                clock.advance(again.retry_after);
                match self.try_run(host, 1)? {
                    Some(Err(third)) if third.why == hold.why => {
                        Err(format!("{hold:?}, then {again:?}, then {third:?}"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// While its machine ID is its own and the store answers, the bound moves on in time.
    fn await_bound(&mut self, host: usize, hold: NotReady) -> Verdict {
        let renewal = self.setting.timing().renew_every.mul_f64(1.1);
        let attempts = renewal.as_millis() / hold.retry_after.as_millis();
        for attempt in 0..attempts + 3 {
            let Host { clock, running: Some(running), .. } = &self.hosts[host] else { break };
            if running.stopped || !running.link.healthy() || !self.holds_its_machine(host) {
                return Ok(());
            }
            clock.advance(hold.retry_after);
            running.subject.service.maintain();
            match self.try_run(host, 1)? {
                Some(Err(NotReady { why: NotReadyReason::AwaitingLease, .. })) => {}
                _ => {
                    let waited = u64::try_from(attempt + 1).unwrap();
                    self.counts.bound_awaited += 1;
                    self.counts.longest_await = self.counts.longest_await.max(waited);
                    return Ok(());
                }
            }
        }
        Err(format!("the bound did not move within {attempts} attempts"))
    }
}
