//! Processes that stand by for one machine ID: which of them serves, and that IDs follow real time whatever their
//! clocks, pauses and store do.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;
use vesta_service::clock::Clock as _;
use vesta_service::contract::{GenMethod, UnixMillis};
use vesta_service::lease::Timing;
use vesta_service::options::Drive;
use vesta_service::testing::{FlakyStore, ManualClock, MemoryStore};
use vesta_service::{BuildError, Builder, ErrorKind, IdMeta, LocalIdService, MachineSource};
use vesta_testkit::Rng;

use crate::common::START;
use crate::common::setting::Setting;

const MILLI: Duration = Duration::from_millis(1);
/// Longest pause between two looks at the record, with room for the rounding of a step.
const POLL: Duration = Duration::from_millis(210);

fn start(setting: &Setting) -> LocalIdService {
    setting
        .reserved()
        .standby(true)
        .build()
        .expect("it may wait")
}

fn kind(service: &LocalIdService) -> Option<ErrorKind> {
    service.try_gen_id().err().map(|error| error.kind())
}

/// Lets time pass in steps until the service makes an ID.
fn until_it_serves(setting: &Setting, service: &LocalIdService) -> (Duration, u64) {
    let began = setting.clock.monotonic();
    loop {
        service.maintain();
        if let Ok(id) = service.try_gen_id() {
            return (setting.clock.monotonic() - began, id);
        }
        assert_eq!(kind(service), Some(ErrorKind::NotHolder));
        setting.clock.advance(10 * MILLI);
        assert!(setting.clock.monotonic() - began < Duration::from_secs(60));
    }
}

#[test]
fn a_second_process_stands_by_and_says_for_which() {
    let setting = Setting::new();
    let holder = start(&setting);
    holder.gen_id().expect("it holds the machine ID");
    let other = setting.elsewhere();
    let waiting = start(&other);
    let error = waiting.gen_id().expect_err("the other one holds it");
    assert_eq!(error.kind(), ErrorKind::NotHolder);
    assert_eq!(error.retry_after(), Some(100 * MILLI));
    let status = waiting.status();
    assert!(!status.ready && status.sealed.is_none() && !status.restart_helps);
    let said = status.not_ready_because.clone().expect("it is not ready");
    let held_by = format!("(pid {}) holds machine ID 7", std::process::id());
    assert!(
        said.starts_with("standing by: ") && said.contains(&held_by),
        "{said}"
    );
    let events = waiting.events(0);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].kind.name(), "standing-by");
    // It waits for hours, in calls of `maintain` that return.
    for _ in 0..100 {
        setting.clock.advance(MILLI * 400);
        holder.maintain();
        assert!(waiting.maintain().expect("it goes on") <= POLL);
        holder.gen_id().expect("the holder is not disturbed");
        assert_eq!(kind(&waiting), Some(ErrorKind::NotHolder));
    }
    assert_eq!(waiting.events(0).len(), 1, "said once");
}

#[test]
fn a_released_machine_id_is_taken_over_at_once() {
    let setting = Setting::new();
    let holder = start(&setting);
    let waiting = start(&setting.elsewhere());
    let last = holder.gen_id().expect("an ID");
    holder.close();
    let (silence, first) = until_it_serves(&setting, &waiting);
    assert!(silence <= POLL, "{silence:?}");
    assert!(first > last);
    assert_eq!(
        (waiting.status().epoch, waiting.status().holder.clone()),
        (2, None)
    );
    assert!(waiting.status().ready);
}

#[test]
fn after_a_crash_the_silence_is_the_window_and_a_32nd() {
    let setting = Setting::new();
    let lost = setting.elsewhere();
    let holder = lost.reserved().standby(true).build().expect("it is free");
    let last = holder.gen_id().expect("an ID");
    let waiting = start(&setting.elsewhere());
    std::mem::forget(holder); // no release
    let (silence, first) = until_it_serves(&setting, &waiting);
    let window = Timing::STANDBY.window;
    assert!(silence >= window + window / 32, "{silence:?}");
    assert!(silence <= window + window / 32 + POLL, "{silence:?}");
    assert!(first > last);
}

#[test]
fn a_holder_whose_renewals_fail_stops_a_window_after_the_last_one_was_made() {
    let setting = Setting::new();
    let service = start(&setting);
    setting.store.lose_replies(u32::MAX);
    let made = setting.clock.monotonic();
    while setting.clock.monotonic() - made < Timing::STANDBY.window {
        service.try_gen_id().expect("within its window");
        setting.clock.advance(10 * MILLI);
        service.maintain();
    }
    // Its record may show a higher bound by now, but it does not know.
    assert_eq!(kind(&service), Some(ErrorKind::AwaitingLease));
    assert!(!service.status().ready);
    setting.store.lose_replies(0);
    setting.clock.advance(100 * MILLI);
    service.maintain();
    service.gen_id().expect("nobody took it over");
}

/// Its claim may have taken effect before the last request of the claim was sent.
#[test]
fn a_claim_that_took_long_is_over_sooner() {
    let setting = Setting::new();
    drop(start(&setting));
    let before = setting.store.asked();
    let slow = start(&setting);
    let requests = setting.store.asked() - before;
    assert_eq!(slow.status().window_left, Timing::STANDBY.window);
    drop(slow);
    let clock = setting.clock.clone();
    setting
        .store
        .after(requests - 1, move || clock.advance(1_500 * MILLI));
    let slow = start(&setting);
    assert_eq!(slow.status().window_left, 500 * MILLI);
    slow.maintain();
    let left = slow.status().window_left;
    assert_eq!(left, Timing::STANDBY.window, "its renewal was due");
}

/// In the layout of seconds, its bound moves once a second.
#[test]
fn a_holder_changes_its_record_at_each_renewal() {
    let setting = Setting::new();
    let service = start(&setting);
    let (began, mut seen) = (setting.clock.monotonic(), vec![setting.record(7)]);
    while setting.clock.monotonic() - began < Duration::from_secs(12) {
        setting.clock.advance(10 * MILLI);
        service.maintain();
        let record = setting.record(7);
        if seen.last() != Some(&record) {
            assert!(record.bound >= seen[seen.len() - 1].bound);
            seen.push(record);
        }
        assert!(service.status().window_left > Duration::from_millis(1_300));
    }
    assert!((18..=22).contains(&seen.len()), "{}", seen.len());
}

/// The clock was set back too far for IDs: another host whose clock is right does better.
#[test]
fn a_holder_that_cannot_issue_is_taken_over() {
    let setting = Setting::new();
    let holder = setting.elsewhere();
    let clock = ManualClock::at(START);
    let service = holder
        .reserved()
        .standby(true)
        .clock(Arc::new(clock.clone()))
        .build();
    let service = service.expect("it is free");
    let last = service.gen_id().expect("an ID");
    let waiting = start(&setting);
    clock.set_wall(UnixMillis(START.0 - 60_000));
    let began = setting.clock.monotonic();
    let first = loop {
        for clock in [&clock, &setting.clock] {
            clock.advance(10 * MILLI);
        }
        service.maintain();
        assert!(kind(&service).is_some());
        waiting.maintain();
        if let Ok(id) = waiting.try_gen_id() {
            break id;
        }
        assert!(setting.clock.monotonic() - began < Duration::from_secs(4));
    };
    assert!(first > last);
}

#[test]
fn a_process_stands_by_through_an_outage_of_its_store() {
    let setting = Setting::new();
    let holder = start(&setting);
    let mut other = setting.elsewhere();
    other.store = FlakyStore::new(other.memory.clone());
    let waiting = start(&other);
    other.store.go_away();
    let outage = setting.clock.monotonic();
    while setting.clock.monotonic() - outage < Duration::from_secs(60) {
        setting.clock.advance(100 * MILLI);
        holder.maintain();
        waiting.maintain();
        assert_eq!(kind(&waiting), Some(ErrorKind::NotHolder));
    }
    let said = waiting
        .status()
        .not_ready_because
        .clone()
        .expect("a reason");
    assert!(said.contains("no reply"), "{said}");
    other.store.come_back();
    for _ in 0..60 {
        setting.clock.advance(100 * MILLI);
        holder.maintain();
        waiting.maintain();
    }
    let said = waiting
        .status()
        .not_ready_because
        .clone()
        .expect("a reason");
    assert!(!said.contains("no reply"), "{said}");
    assert_eq!(
        waiting.gen_id().unwrap_err().retry_after(),
        Some(100 * MILLI)
    );
    holder.close();
    let (_, first) = until_it_serves(&setting, &waiting);
    assert!(first > 0);
}

/// Claims keep a distance from what such a store may forget.
#[test]
fn with_a_doubtful_store_a_takeover_takes_longer() {
    let setting = Setting::new();
    setting.store.set_doubt();
    let holder = start(&setting.elsewhere());
    let waiting = start(&setting.elsewhere());
    let in_time = |service: &LocalIdService| {
        let began = setting.clock.monotonic();
        loop {
            service.maintain();
            if let Ok(id) = service.try_gen_id() {
                return (id, setting.clock.monotonic() - began);
            }
            setting.clock.advance(10 * MILLI);
            assert!(setting.clock.monotonic() - began < Duration::from_secs(12));
        }
    };
    let (last, late) = in_time(&holder);
    println!("the first ID after {late:?}");
    std::mem::forget(holder);
    let (first, late) = in_time(&waiting);
    println!("the successor's after {late:?}");
    assert!(first > last);
}

#[test]
fn a_paused_holder_stands_by_again() {
    let setting = Setting::new();
    let paused = start(&setting);
    let before = paused.gen_id().expect("an ID");
    let successor = start(&setting.elsewhere());
    let (_, first) = until_it_serves(&setting, &successor);
    // It wakes up: nothing has told it yet.
    assert_eq!(kind(&paused), Some(ErrorKind::AwaitingLease));
    paused.maintain();
    assert_eq!(kind(&paused), Some(ErrorKind::NotHolder));
    assert_eq!(paused.status().fenced_total, 1);
    successor.close();
    let (_, back) = until_it_serves(&setting, &paused);
    assert!(before < first && first < back);
}

#[test]
fn a_wrong_wall_clock_delays_no_takeover_within_five_seconds() {
    let setting = Setting::new();
    let holder = setting.elsewhere();
    let ahead = ManualClock::at(UnixMillis(START.0 + 2_500));
    let service = holder
        .reserved()
        .standby(true)
        .clock(Arc::new(ahead))
        .build();
    let service = service.expect("it is free");
    let last = service.gen_id().expect("an ID");
    let waiting = start(&setting);
    std::mem::forget(service);
    let (silence, first) = until_it_serves(&setting, &waiting);
    assert!(
        silence <= Timing::STANDBY.window * 33 / 32 + POLL,
        "{silence:?}"
    );
    assert!(first > last);
}

#[test]
fn settings_that_break_the_order_are_refused() {
    let setting = Setting::new();
    let refused = |builder: Builder| match builder.standby(true).build() {
        Err(error @ BuildError::Setting(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let said = refused(setting.builder());
    assert!(said.contains("requires one machine ID"), "{said}");
    let said = refused(setting.builder().machine(MachineSource::Fixed(7)));
    assert!(said.contains("that a store reserves"), "{said}");

    let holder = start(&setting);
    let other = setting.elsewhere();
    for builder in [
        other.reserved().gen_method(GenMethod::Rest),
        other.reserved().version(1),
    ] {
        let said = refused(builder);
        assert!(said.contains("another genMethod or version"), "{said}");
    }
    drop(holder);
    let alone = other.reserved().gen_method(GenMethod::Rest).standby(true);
    alone.build().expect("no IDs of another process follow");
}

/// A host in real time.
struct Host {
    clock: ManualClock,
    /// Rate of its clocks, in thousandths.
    rate: u64,
    store: Arc<FlakyStore>,
    folder: TempDir,
    service: Option<Arc<LocalIdService>>,
    /// Steps for which it does nothing.
    asleep: u64,
}

/// IDs in the order of their calls, which do not overlap.
#[derive(Debug, Default)]
struct Order {
    last: u64,
    count: u64,
    takeovers: u64,
    holder: Option<usize>,
    inversions: u64,
}

impl Order {
    fn add(&mut self, host: usize, id: u64) {
        self.inversions += u64::from(id <= self.last);
        self.takeovers += u64::from(self.holder.replace(host).is_some_and(|it| it != host));
        self.last = self.last.max(id);
        self.count += 1;
    }
}

struct World {
    rng: Rng,
    hosts: Vec<Host>,
    order: Arc<Mutex<Order>>,
    /// With it, bounds reach further than windows: only its own clock stops a holder then.
    borrow_ahead: Duration,
}

impl World {
    fn new(seed: u64, rates: (u64, u64)) -> Self {
        let memory = Arc::new(MemoryStore::new());
        let mut rng = Rng::new(seed);
        let host = |_| Host {
            clock: ManualClock::at(UnixMillis(START.0 + rng.below(2_000))),
            rate: rng.within(rates.0..=rates.1),
            store: FlakyStore::new(memory.clone()),
            folder: vesta_testkit::fast_folder(),
            service: None,
            asleep: 0,
        };
        let hosts = (0..3).map(host).collect();
        let (order, borrow_ahead) = (Arc::default(), Duration::from_secs(5 * (seed % 2)));
        Self {
            rng,
            hosts,
            order,
            borrow_ahead,
        }
    }

    fn start(&mut self, host: usize) {
        let Host {
            clock,
            store,
            folder,
            service,
            ..
        } = &mut self.hosts[host];
        let source = MachineSource::Reserved {
            store: store.clone(),
            id: 7,
        };
        // A seconds layout would hide inversions inside a second behind the sequence.
        let builder = LocalIdService::builder()
            .layout(IdMeta::MIN_GRANULARITY)
            .machine(source);
        let builder = builder
            .borrow_ahead(self.borrow_ahead)
            .state_dir(folder.path())
            .clock(Arc::new(clock.clone()));
        *service = builder
            .drive(Drive::ByHand)
            .standby(true)
            .build()
            .ok()
            .map(Arc::new);
    }

    /// Real time passes; each host's clocks run at their rate.
    fn pass(&self, micros: u64) {
        for host in &self.hosts {
            host.clock
                .advance(Duration::from_micros(micros * host.rate / 1000));
        }
    }

    /// Other hosts make IDs while a request of this host is under way.
    fn interleave(&mut self, host: usize) {
        let others = self
            .hosts
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != host);
        let services = others.filter_map(|(other, it)| Some((other, it.service.clone()?)));
        let services: Vec<_> = services.collect();
        let (order, late) = (self.order.clone(), self.rng.span(700_000));
        let clocks: Vec<_> = self
            .hosts
            .iter()
            .map(|it| (it.clock.clone(), it.rate))
            .collect();
        self.hosts[host].store.after(self.rng.below(6), move || {
            for (other, service) in &services {
                if let Ok(id) = service.try_gen_id() {
                    order.lock().add(*other, id);
                }
            }
            for (clock, rate) in clocks {
                clock.advance(Duration::from_micros(late * rate / 1000));
            }
        });
    }

    fn step(&mut self) {
        let micros = self.rng.span(120_000);
        self.pass(micros);
        let host = self.rng.index(self.hosts.len());
        match self.rng.below(1000) {
            0..=4 => self.hosts[host].asleep = self.rng.below(300),
            5..=7 => {
                // A crash: nothing is released, and the host may keep its state folder.
                self.hosts[host].store.go_away();
                self.hosts[host].service = None;
                if self.rng.percent(50) {
                    self.hosts[host].folder = vesta_testkit::fast_folder();
                }
            }
            8..=9 => self.hosts[host].service = None,
            10..=12 => self.hosts[host].store.go_away(),
            13..=30 => self.hosts[host].store.come_back(),
            31..=40 => self.hosts[host].store.lose_replies(2),
            41..=50 => self.hosts[host].store.hold_back(1),
            51..=70 => drop(self.hosts[host].store.deliver()),
            71..=90 => self.interleave(host),
            91..=100 => {
                let clock = &self.hosts[host].clock;
                let wall = clock.wall().0 + self.rng.below(4_000);
                clock.set_wall(UnixMillis(wall - 2_500));
            }
            _ => {}
        }
        for host in 0..self.hosts.len() {
            let it = &mut self.hosts[host];
            it.asleep = it.asleep.saturating_sub(1);
            if it.asleep > 0 {
                continue;
            }
            let Some(service) = it.service.clone() else {
                if self.rng.percent(3) {
                    self.start(host);
                }
                continue;
            };
            // A call may come before the keeper has noticed anything.
            let asks_first = self.rng.percent(50);
            if asks_first {
                self.ask(host, &service);
            }
            if self.rng.percent(80) {
                service.maintain();
            }
            if !asks_first {
                self.ask(host, &service);
            }
        }
    }

    fn ask(&self, host: usize, service: &LocalIdService) {
        if let Ok(id) = service.try_gen_id() {
            self.order.lock().add(host, id);
        }
    }
}

fn play(seeds: std::ops::Range<u64>, rates: (u64, u64)) -> Order {
    let mut all = Order::default();
    for seed in seeds {
        let mut world = World::new(seed, rates);
        (0..1_500).for_each(|_| world.step());
        let order = world.order.lock();
        all.inversions += order.inversions;
        all.count += order.count;
        all.takeovers += order.takeovers;
        assert!(
            order.inversions == 0 || rates.1 > 1015,
            "seed {seed}: {order:?}"
        );
    }
    println!(
        "{} IDs, {} takeovers, {} inversions",
        all.count, all.takeovers, all.inversions
    );
    all
}

#[test]
fn ids_follow_real_time_over_takeovers_pauses_and_crashes() {
    let seeds = vesta_testkit::full_or(2_000, 100);
    let order = play(0..seeds, (985, 1015));
    assert!(
        order.takeovers > seeds && order.count > seeds * 300,
        "{order:?}"
    );
}

/// The same hosts with clocks that differ in rate by more than is allowed for.
#[test]
fn clocks_of_very_different_rates_break_the_order_and_that_is_found() {
    let order = play(0..100, (500, 1500));
    assert!(order.inversions > 0, "{order:?}");
}
