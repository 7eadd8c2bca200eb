//! Back-off after losing a race for the position, and after a failed request.

use std::cell::Cell;
use std::hint::spin_loop;
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
    /// Next pause of this thread.
    static PAUSE: Cell<Duration> = const { Cell::new(SHORTEST) };
}

const SHORTEST: Duration = Duration::from_nanos(60);
const LONGEST: Duration = Duration::from_micros(4);
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// Other threads that claim more often than this do nothing else.
const DENSE: Duration = Duration::from_nanos(15);

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
    let dense = DENSE.saturating_mul(u32::try_from(claims).unwrap_or(u32::MAX)) > paused;
    PAUSE.set(if dense {
        (pause * 2).min(LONGEST)
    } else {
        (pause / 2).max(SHORTEST)
    });
    word
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

/// Backs off once before blocking on a contended lock: it is held for nanoseconds only.
#[cold]
pub(crate) fn pause_at_lock() {
    spin_for(SHORTEST);
}

/// Spins for at least `pause`; returns the actual duration.
fn spin_for(pause: Duration) -> Duration {
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
}
