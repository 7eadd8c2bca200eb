//! Retry delays: a refused caller that retries after the returned delay gets its ID, and not a
//! millisecond earlier. Each history here failed once.

use std::sync::Arc;
use std::time::Duration;

use crate::common::START;
use crate::common::setting::Setting;
use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::clock::Clock as _;
use vesta_service::contract::{NotReady, NotReadyReason, UnixMillis};
use vesta_service::lease::Timing;
use vesta_service::options::Drive;
use vesta_service::testing::{ManualClock, MemoryStore};
use vesta_service::{ErrorKind, IdError, IdMeta, LocalIdService, MachineSource};

const MAX_WAIT: Duration = Duration::from_secs(2);

/// One ID a second, with an epoch inside a second.
fn one_a_second() -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 2,
        time_bits: 30,
        seq_bits: 0,
        machine_bits: 2,
        order: FieldOrder::TimeSeqMachine,
        unit: TimeUnit::Second,
        epoch: UnixMillis(START.0 - (1 << 33)),
    })
    .unwrap()
}

/// A host with its own service and clock, without a local record.
struct Host {
    clock: ManualClock,
    service: LocalIdService,
}

impl Host {
    fn start(layout: IdMeta) -> Self {
        Self::start_on(
            &Arc::new(MemoryStore::default()),
            ManualClock::at(START),
            layout,
            3,
            1,
        )
    }

    fn start_on(
        store: &Arc<MemoryStore>,
        clock: ManualClock,
        layout: IdMeta,
        last_machine: u64,
        machines: usize,
    ) -> Self {
        let second = Duration::from_secs(1);
        let service = LocalIdService::builder()
            .layout(layout)
            .machine(MachineSource::Pool {
                store: store.clone(),
                range: Some(0..=last_machine),
            })
            .machine_count(machines)
            .max_wait(MAX_WAIT)
            .timing(Timing {
                window: 3 * second,
                renew_every: second,
                request_timeout: second,
                takeover_grace: 9 * second,
            })
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
            .state_dir("/dev/null/none")
            .build()
            .unwrap();
        Self { clock, service }
    }

    fn step(&self, millis: i64) {
        self.clock.set_wall(UnixMillis(
            self.clock.wall().0.checked_add_signed(millis).unwrap(),
        ));
    }

    fn refusal(&self) -> Option<NotReady> {
        match self.service.try_gen_id() {
            Ok(_) => None,
            Err(IdError::NotReady(refusal)) => Some(refusal),
            Err(error) => panic!("{error}"),
        }
    }

    /// Retries after the returned delay, and a millisecond earlier where the delay is exact.
    fn retry(&self, exact: bool) {
        let refusal = self.refusal().expect("a refusal");
        let same = || self.refusal().filter(|again| again.why == refusal.why);
        let milli = Duration::from_millis(1);
        if exact {
            self.clock.advance(refusal.retry_after - milli);
            assert!(same().is_some(), "a millisecond too early: {refusal:?}");
            self.clock.advance(milli);
            assert_eq!(same(), None, "{refusal:?}");
            return;
        }
        // The delay is computed from a wall clock that is accurate to the millisecond.
        self.clock.advance(refusal.retry_after);
        if let Some(again) = same() {
            assert!(
                again.retry_after <= 2 * milli,
                "{refusal:?}, and then {again:?}"
            );
            self.clock.advance(again.retry_after);
            assert_eq!(same(), None, "{refusal:?}, and then {again:?}");
        }
    }
}

#[test]
fn a_used_up_second_ends_after_the_returned_delay() {
    let host = Host::start(one_a_second());
    assert_eq!(host.refusal(), None);
    host.retry(true);
    host.retry(true);
}

/// Failed once: the delay was too short if the clock was not read meanwhile.
#[test]
fn the_delay_is_right_after_a_small_step_back() {
    let host = Host::start(one_a_second());
    assert_eq!(host.refusal(), None);
    host.step(-114);
    host.retry(false);
}

/// Failed once: the delay was too short while the wall clock was ignored.
#[test]
fn the_delay_is_right_after_an_ignored_jump() {
    let host = Host::start(one_a_second());
    host.step(-9);
    assert_eq!(host.refusal(), None);
    host.step(3_660_000);
    host.retry(false);
    host.retry(false);
}

/// Failed once: the delay was repeatedly too short by less than a millisecond.
#[test]
fn the_delay_is_right_with_the_clock_far_behind() {
    let host = Host::start(one_a_second());
    assert_eq!(host.refusal(), None);
    host.step(-4_321);
    host.service.maintain();
    host.clock.advance(Duration::from_millis(6));
    host.service.maintain();
    host.step(-2_345);
    assert_eq!(
        host.refusal().map(|refusal| refusal.why),
        Some(NotReadyReason::ClockBehind)
    );
    host.retry(true);
}

/// Failed once: the error asked to wait for the clock.
#[test]
fn a_closed_service_reports_it_whatever_the_clock_shows() {
    let host = Host::start(IdMeta::MIN_GRANULARITY);
    assert_eq!(host.refusal(), None);
    host.service.close();
    host.step(-86_400_000);
    assert_eq!(
        host.service.try_gen_id().unwrap_err().kind(),
        ErrorKind::Sealed
    );
    assert_eq!(host.service.gen_id().unwrap_err().kind(), ErrorKind::Sealed);
}

/// One of them may take over the machine ID of the other while it is not renewed.
#[test]
fn two_services_that_meet_on_one_machine_id_repeat_nothing() {
    let store = Arc::new(MemoryStore::default());
    let first = Host::start_on(&store, ManualClock::at(START), one_a_second(), 0, 1);
    let mut ids = vec![first.service.gen_id().unwrap()];
    first.clock.advance(Duration::from_secs(6));
    first.service.close();
    // The first is not renewed while the second starts, so it is taken over.
    let hosts = [(); 2].map(|()| Host::start_on(&store, first.clock.clone(), one_a_second(), 0, 1));
    for host in &hosts {
        ids.extend(host.service.gen_id());
        host.service.maintain();
        ids.extend(host.service.try_gen_id());
    }
    hosts[0].step(-12_000);
    ids.extend(hosts.iter().flat_map(|host| host.service.try_gen_id()));
    hosts[0].step(60_000);
    for host in &hosts {
        host.service.maintain();
        ids.extend(host.service.gen_id());
    }
    assert!(ids.len() >= 3, "{ids:?}");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_call_waits_no_longer_than_max_wait() {
    let host = Host::start(one_a_second());
    let before = host.clock.monotonic();
    let error = host.service.gen_ids(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SequenceUsedUp);
    let waited = host.clock.monotonic() - before;
    assert!(waited <= MAX_WAIT, "{waited:?}");
}

/// Failed once: the delay was always 10 ms.
#[test]
fn during_an_outage_the_delay_grows_and_covers_the_next_request() {
    let setting = Setting::new();
    let service = setting.start();
    setting.store.go_away();
    setting.clock.advance(Duration::from_secs(5));
    service.maintain();
    let milli = Duration::from_millis(1);
    let (mut refusals, mut times) = (0, Vec::new());
    let began = setting.clock.monotonic();
    while setting.clock.monotonic() - began < Duration::from_secs(60) {
        let IdError::NotReady(refusal) = service.try_gen_id().unwrap_err() else {
            panic!()
        };
        assert_eq!(refusal.why, NotReadyReason::AwaitingLease);
        refusals += 1;
        times.push(refusal.retry_after);
        let due = service.maintain().expect("it goes on");
        assert!(
            refusal.retry_after >= due,
            "{refusal:?}, the next request is in {due:?}"
        );
        setting.clock.advance(refusal.retry_after);
        service.maintain();
    }
    assert!(refusals <= 60, "{refusals} refusals in a minute");
    assert!(times[0] <= Duration::from_millis(200), "{times:?}");
    assert!(times.iter().skip(10).is_sorted(), "{times:?}");
    assert_eq!(times.last(), Some(&Duration::from_secs(2)));

    setting.store.come_back();
    let IdError::NotReady(refusal) = service.try_gen_id().unwrap_err() else {
        panic!()
    };
    setting.clock.advance(refusal.retry_after);
    service.maintain();
    service.try_gen_id().expect("the delay was right");
    // The next window is requested at once: the outage leaves no trace.
    setting
        .clock
        .set_wall(UnixMillis(setting.clock.wall().0 + 30 * 60 * 1000));
    let IdError::NotReady(refusal) = service.try_gen_id().unwrap_err() else {
        panic!()
    };
    assert!(refusal.retry_after <= 10 * milli, "{refusal:?}");
}
