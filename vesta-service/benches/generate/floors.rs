//! The steps that no generator of a given kind can avoid, each by itself.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Row, row};

pub(crate) const ADD: &str = "a bare fetch-add";
pub(crate) const SECONDS: &str = "time() + compare-and-swap";
pub(crate) const COARSE: &str = "coarse clock + compare-and-swap";
pub(crate) const LOCK: &str = "time() + a parking_lot mutex";
pub(crate) const CYCLES: &str = "cycle counter + compare-and-swap";

/// Adds 1 by compare-and-swap, after reading a clock.
fn swapping(name: &'static str, clock: impl Fn() -> u64 + Copy + Sync + 'static) -> Row {
    let word: &AtomicU64 = Box::leak(Box::default());
    row!(name, name, {
        let shown = clock();
        let mut next = word.load(Ordering::Relaxed);
        while let Err(found) =
            word.compare_exchange_weak(next, next + 1, Ordering::Relaxed, Ordering::Relaxed)
        {
            next = found;
        }
        shown << 20 | next
    })
}

#[allow(unsafe_code, reason = "the bare steps")]
fn seconds() -> u64 {
    // SAFETY: time(2) with a null pointer only returns the time.
    unsafe { libc::time(std::ptr::null_mut()) }.cast_unsigned()
}

fn coarse() -> u64 {
    rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse)
        .tv_nsec
        .cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the bare steps")]
pub(crate) fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and only returns a number.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn cycles() -> u64 {
    coarse()
}

pub(crate) fn rows() -> Vec<Row> {
    let counter: &AtomicU64 = Box::leak(Box::default());
    let guarded: &parking_lot::Mutex<u64> = Box::leak(Box::default());
    vec![
        row!(ADD, ADD, counter.fetch_add(1, Ordering::Relaxed)),
        swapping(SECONDS, seconds),
        swapping(COARSE, coarse),
        swapping(CYCLES, cycles),
        row!(LOCK, LOCK, {
            let shown = seconds();
            let mut next = guarded.lock();
            *next += 1;
            shown << 20 | *next
        }),
    ]
}
