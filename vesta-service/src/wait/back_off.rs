//! Back-off: after losing a race for the position, and after a request that failed.

use std::cell::Cell;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

use crate::clock::instant;

/// The longest pause after a request to a store that failed.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a request to a store that failed, as so many did just before: 100 ms at first,
/// then twice as long each time.
pub(crate) fn retry_pause(failures: u32) -> Duration {
    let pause = Duration::from_millis(100) * 2_u32.saturating_pow(failures);
    pause.min(LONGEST_PAUSE)
}

thread_local! {
    /// When this thread came back from its last pause, and how long that was.
    static LAST: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Pause of a caller that found the position taken.
///
/// Cores that fight over one word spend their time moving it between their caches. While one of them
/// looks away, the other works at the speed of a caller that is alone. Who loses now and then, because it
/// does something else between its IDs, looks away for as long as it takes to see that; who has just come
/// back and loses again, for twice as long as before.
#[cold]
pub(crate) fn back_off() {
    let lost = instant();
    let pause = match LAST.get() {
        Some((back, pause)) if lost.duration_since(back) < SOON => (pause * 2).min(LONGEST),
        Some((_, pause)) => (pause / 2).max(SHORTEST),
        None => SHORTEST,
    };
    let mut back = lost;
    while back.duration_since(lost) < pause {
        spin_loop();
        back = instant();
    }
    LAST.set(Some((back, pause)));
}

const SHORTEST: Duration = Duration::from_nanos(60);
const LONGEST: Duration = Duration::from_micros(16);
/// A loss after less than this is the next one of the same race.
const SOON: Duration = Duration::from_nanos(100);
