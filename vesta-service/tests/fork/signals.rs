//! A handler of a timer that takes IDs 2,000 times a second, whatever it interrupts.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use vesta_service::contract::ErrorKind;
use vesta_service::options::PopulatorKind;
use vesta_service::{IdMeta, LocalIdService};

use crate::fixed;

const WANTED: usize = 1000;
static SERVICE: OnceLock<LocalIdService> = OnceLock::new();
static TAKEN: [AtomicU64; WANTED * 100] = [const { AtomicU64::new(0) }; WANTED * 100];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static REENTERED: AtomicUsize = AtomicUsize::new(0);
static OTHERS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_timer(_: libc::c_int) {
    let Some(service) = SERVICE.get() else { return };
    match service.try_gen_id() {
        Ok(id) => {
            let at = COUNT.fetch_add(1, Ordering::Relaxed);
            TAKEN[at % TAKEN.len()].store(id, Ordering::Relaxed);
        }
        Err(error) => {
            let count = match error.kind() {
                ErrorKind::Reentered => &REENTERED,
                _ => &OTHERS,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Lets a timer interrupt this thread every 500 µs, until it is dropped.
struct Timer(libc::timer_t);

#[allow(unsafe_code)]
impl Timer {
    fn start() -> Self {
        let half = libc::timespec {
            tv_sec: 0,
            tv_nsec: 500_000,
        };
        let often = libc::itimerspec {
            it_interval: half,
            it_value: half,
        };
        // SAFETY: all structures are complete and live longer than the calls. The handler touches atomics and the
        // service under test only, which promises to serve or refuse it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_timer as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            assert_eq!(
                libc::sigaction(libc::SIGRTMIN(), &raw const action, std::ptr::null_mut()),
                0
            );
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGRTMIN();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = std::mem::zeroed();
            assert_eq!(
                libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer),
                0
            );
            assert_eq!(
                libc::timer_settime(timer, 0, &raw const often, std::ptr::null_mut()),
                0
            );
            Self(timer)
        }
    }
}

#[allow(unsafe_code)]
impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// One populator after another, because a handler is a function without parameters.
#[test]
fn a_signal_handler_gets_an_id_of_its_own_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let service = fixed(1, folder.path())
        .layout(roomy())
        .populator(PopulatorKind::Atomic);
    let service = SERVICE.get_or_init(|| service.build().unwrap());
    let mut own = Vec::new();
    let timer = Timer::start();
    while COUNT.load(Ordering::Relaxed) < WANTED {
        // A day of IDs would not fit into memory: the last of each thousand, and all around an interruption.
        let before = COUNT.load(Ordering::Relaxed) + REENTERED.load(Ordering::Relaxed);
        let ids: [u64; 200] = std::array::from_fn(|_| service.gen_id().unwrap());
        assert!(ids.is_sorted_by(|one, next| one < next), "never back");
        if COUNT.load(Ordering::Relaxed) + REENTERED.load(Ordering::Relaxed) > before {
            own.extend(ids);
        }
    }
    drop(timer);
    let count = COUNT.load(Ordering::Relaxed);
    assert!(count <= TAKEN.len(), "{count}");
    let handler = TAKEN[..count].iter().map(|id| id.load(Ordering::Relaxed));
    let mut seen = HashSet::new();
    for id in own.into_iter().chain(handler) {
        assert!(seen.insert(id), "twice: {id}");
    }
    assert_eq!(OTHERS.load(Ordering::Relaxed), 0);
    let refused = REENTERED.load(Ordering::Relaxed);
    assert!(
        refused >= 10,
        "only {refused} met a call in the middle of a change"
    );
    service.close();
}

/// 2^32 IDs per second, so that no call waits for the next one.
fn roomy() -> IdMeta {
    let spec = *IdMeta::MAX_PEAK.spec();
    IdMeta::new(vesta_service::contract::LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: 30,
        seq_bits: 32,
        machine_bits: 1,
        ..spec
    })
    .unwrap()
}
