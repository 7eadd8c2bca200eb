//! The wall clock to the millisecond, for 10 ns instead of 27.
//!
//! Between two precise readings the processor's cycle counter shows whether the millisecond can already be
//! over. Each thread keeps the last millisecond it read and the number of cycles for which it certainly
//! still lasts. Past that, or whenever the counter jumps, it reads the precise clock again. That is a
//! handful of precise readings a millisecond at any rate of IDs, and none at all while idle. An error of the
//! estimated frequency makes the reading lag by a part of a millisecond; it can never make it run ahead.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use vesta_intf::UnixMillis;

use super::{cycle_counter, monotonic, since_1970};
use crate::number::millis;

/// Last reading of a thread: from `from` on, for `span` cycles, the wall clock shows `millis`.
#[derive(Clone, Copy)]
struct Anchor {
    from: u64,
    span: u64,
    millis: u64,
}

thread_local! {
    static ANCHOR: Cell<Anchor> = const { Cell::new(Anchor { from: 0, span: 0, millis: 0 }) };
}

/// Cycles per millisecond; 0 while unknown, or if the counter is not trusted.
static FREQUENCY: AtomicU64 = AtomicU64::new(0);

/// Start of the frequency measurement: (cycles, monotonic time).
static MEASURED_FROM: Mutex<Option<(u64, Duration)>> = Mutex::new(None);

#[inline]
pub(super) fn wall() -> UnixMillis {
    let anchor = ANCHOR.get();
    // A counter that went back wraps to a huge distance, which is outside the span too.
    if cycle_counter().wrapping_sub(anchor.from) < anchor.span {
        return UnixMillis(anchor.millis);
    }
    read_precisely()
}

#[cold]
#[inline(never)]
fn read_precisely() -> UnixMillis {
    let from = cycle_counter();
    let now = since_1970();
    let millis = millis(now);
    // Relaxed: an independent number; an old value is as good.
    let frequency = FREQUENCY.load(Ordering::Relaxed);
    // `from` was read before `now`, so the span ends too early rather than too late. Subtracting a
    // 64th covers an error of the frequency.
    let left_in_millisecond = u64::from(1_000_000 - now.subsec_nanos() % 1_000_000);
    let span = (left_in_millisecond * frequency / 1_000_000) * 63 / 64;
    ANCHOR.set(Anchor { from, span, millis });
    measure();
    UnixMillis(millis)
}

/// Estimates the frequency against the monotonic clock: first over a millisecond, then again each
/// second, so that it follows a virtual machine that moved to another host.
fn measure() {
    const FIRST: Duration = Duration::from_millis(1);
    const AGAIN: Duration = Duration::from_secs(1);
    if !*TRUSTED {
        return;
    }
    let Some(mut measured_from) = MEASURED_FROM.try_lock() else {
        return;
    };
    let before = cycle_counter();
    let now = monotonic();
    let after = cycle_counter();
    let Some((cycles, then)) = *measured_from else {
        *measured_from = Some((before, now));
        return;
    };
    let elapsed = now.saturating_sub(then);
    let known = FREQUENCY.load(Ordering::Relaxed) > 0;
    if elapsed < if known { AGAIN } else { FIRST } {
        return;
    }
    let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    let counted = before.wrapping_sub(cycles);
    let frequency = u128::from(counted) * 1_000_000 / u128::from(nanos.max(1));
    // Interrupted between the readings, or the counter was reset: start over. No processor counts
    // below 100 MHz or above 100 GHz.
    let undisturbed = after.wrapping_sub(before) < counted / 256;
    if undisturbed && (100_000..100_000_000).contains(&frequency) {
        FREQUENCY.store(u64::try_from(frequency).unwrap_or(0), Ordering::Relaxed);
    }
    *measured_from = Some((before, now));
}

/// `true` if the counter runs evenly: the processor reports so, and the kernel uses it as its clock source.
static TRUSTED: LazyLock<bool> = LazyLock::new(|| {
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = processor
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    let has = |flag| flags.split_ascii_whitespace().any(|word| word == flag);
    matches!(
        source.trim(),
        "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"
    ) && has("constant_tsc")
        && has("nonstop_tsc")
});
