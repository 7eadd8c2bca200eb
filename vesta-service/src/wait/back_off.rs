//! Back-off after losing a race for the position, and after a failed request.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::{Clock as _, SystemClock, instant};

/// Maximum pause after a failed store request.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Pause after a failed store request, given the number of preceding failures: 100 ms at first,
/// then doubled each time.
pub fn retry_pause(failures: u32) -> Duration {
    let pause = Duration::from_millis(100) * 2_u32.saturating_pow(failures);
    pause.min(LONGEST_PAUSE)
}

thread_local! {
    /// Next pause of this thread, in claims.
    static PAUSE: Cell<u32> = const { Cell::new(SHORTEST) };
}

/// Pauses, in the time of claims that a caller makes alone.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 1024;
/// Other threads that need less time for a claim do nothing else: they read a clock, too, and loop.
const DENSE: u32 = 5;
/// Pauses at a lock before the thread sleeps.
const TRIES: usize = 4;
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

/// Time of a claim on this processor without contention. Measured once, which takes microseconds.
fn alone() -> Duration {
    static ALONE: LazyLock<Duration> = LazyLock::new(|| {
        const CLAIMS: u32 = 256;
        let word = std::sync::atomic::AtomicU64::new(0);
        let claim = |next| {
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            black_box(word.compare_exchange(next, next + 1, success, failure)).is_ok()
        };
        let mut next = 0;
        let mut round = || {
            let begin = instant();
            for _ in 0..CLAIMS {
                next += u64::from(claim(next));
            }
            instant().duration_since(begin)
        };
        // The least: something else may have used the processor meanwhile.
        let times = [(); 8].map(|()| round());
        times
            .into_iter()
            .min()
            .unwrap_or_default()
            .max(Duration::from_nanos(256))
            / CLAIMS
    });
    *ALONE
}

/// Backs off after losing a race: the caller wanted to advance a word by `size` and found it at `found`. Returns
/// the new value of the word.
///
/// Cores that contend for one word spend their time moving it between their caches. While one of them
/// backs off, the others run at full speed. The distance that the word moved meanwhile shows their load:
/// if they take one claim after another, the next pause of this thread doubles; otherwise it halves. So
/// callers that work between their claims pause only briefly.
#[cold]
pub fn back_off(found: u64, size: u64, load: impl Fn() -> u64) -> u64 {
    let pause = PAUSE.get();
    let paused = spin_for(pause);
    let word = load();
    let claims = word.saturating_sub(found) / size.max(1);
    let claims = u32::try_from(claims).unwrap_or(u32::MAX);
    let too_short = (alone() * DENSE).saturating_mul(claims) > paused;
    adapt(if too_short { pause * 2 } else { pause / 2 });
    word
}

/// Sets the next pause of this thread.
fn adapt(next: u32) {
    PAUSE.set(next.clamp(SHORTEST, LONGEST));
}

/// Lets a thread go on that is waited for, and that needs nanoseconds unless it does not run. After some attempts
/// this thread sleeps, so that even one of a lower real-time priority runs.
pub(crate) fn give_way(attempt: u32) {
    match attempt {
        0..64 if !cfg!(any(loom, shuttle)) => spin_loop(),
        0..1024 => crate::sync::thread::yield_now(),
        _ => SystemClock::new().park(SHORTEST_SLEEP),
    }
}

/// Backs off from a lock that was found taken, a few times, before the caller sleeps until it is free. It is held for
/// nanoseconds only. A thread that finds it taken after a pause, too, pauses longer the next time.
#[cold]
pub(crate) fn pause_at_lock<G>(lock: impl Fn() -> Option<G>) -> Option<G> {
    (0..TRIES).find_map(|_| {
        let pause = PAUSE.get();
        spin_for(pause);
        let guard = lock();
        // While another thread does nothing else, the lock is free about every other time.
        adapt(if guard.is_some() {
            pause - pause / 8
        } else {
            pause * 2
        });
        guard
    })
}

/// Spins for the time of at least so many claims; returns the actual duration.
fn spin_for(claims: u32) -> Duration {
    let pause = alone() * claims;
    let begin = instant();
    loop {
        spin_loop();
        let paused = instant().duration_since(begin);
        if paused >= pause {
            return paused;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The test scripts the other threads' progress during a pause, and reads the pauses instead of
    /// measuring them.
    #[test]
    fn pauses_grow_under_dense_contention_and_shrink_otherwise() {
        let lose = |size, to: u64| {
            assert_eq!(back_off(1000, size, || to), to);
            PAUSE.get()
        };
        PAUSE.set(SHORTEST);
        let many = 1 << 40;
        assert_eq!(lose(1, many), SHORTEST * 2);
        assert_eq!(lose(64, many), SHORTEST * 4);
        for _ in 0..9 {
            lose(1, many);
        }
        assert_eq!(PAUSE.get(), LONGEST);
        assert_eq!(lose(64, 1064), LONGEST / 2, "one claim of 64");
        assert_eq!(lose(1, 1001), LONGEST / 4);
        assert_eq!(lose(1, 999), LONGEST / 8, "given back meanwhile");
        for _ in 0..9 {
            lose(1, 1001);
        }
        assert_eq!(PAUSE.get(), SHORTEST);
    }

    #[test]
    fn pauses_at_a_lock_grow_while_it_is_taken() {
        PAUSE.set(SHORTEST);
        let tries = Cell::new(0);
        let lock = |free_at| {
            tries.set(0);
            pause_at_lock(|| {
                tries.set(tries.get() + 1);
                (tries.get() == free_at).then_some(())
            })
        };
        assert_eq!((lock(2), PAUSE.get()), (Some(()), SHORTEST * 2 / 8 * 7));
        assert_eq!((lock(1), PAUSE.get()), (Some(()), 25));
        for _ in 0..9 {
            lock(1);
        }
        assert_eq!(PAUSE.get(), SHORTEST);
        assert_eq!((lock(9), tries.get()), (None, TRIES), "then it sleeps");
        assert_eq!(PAUSE.get(), SHORTEST << TRIES);
    }
}
