//! Other generators, each as fast as its documentation says how.

use std::sync::Mutex;

use ferroid::define_snowflake_id;
use ferroid::generator::{AtomicSnowflakeGenerator, LockSnowflakeGenerator};
use ferroid::time::MonotonicClock;

use crate::{Work, work};

define_snowflake_id!(
    RoomyId, u64,
    reserved: 1,
    timestamp: 41,
    machine_id: 2,
    sequence: 20
);

pub(crate) const BEST: &str = "ferroid atomic, milliseconds";

/// Calls `add` with the name of each peer and the making of its IDs.
pub(crate) fn each(add: &mut dyn FnMut(&'static str, Work)) {
    let epoch = std::time::Duration::from_millis(1_420_041_600_000);
    let clock = MonotonicClock::<1>::with_epoch(epoch);
    let atomic: AtomicSnowflakeGenerator<RoomyId, _> =
        AtomicSnowflakeGenerator::new(1, clock.clone());
    add(
        BEST,
        work(move || atomic.next_id(|_| std::hint::spin_loop()).to_raw()),
    );
    let lock: LockSnowflakeGenerator<RoomyId, _> = LockSnowflakeGenerator::new(1, clock);
    add(
        "ferroid lock, milliseconds",
        work(move || {
            lock.try_next_id(|_| std::hint::spin_loop())
                .expect("not poisoned")
                .to_raw()
        }),
    );

    // These two have no other layout than 41 + 10 + 12 bits: 4,096 IDs in a millisecond, so that
    // 244 ns an ID is the layout and not the generator.
    let snowflaked = snowflaked::sync::Generator::new(1);
    add(
        "snowflaked sync (12-bit sequence)",
        work(move || snowflaked.generate()),
    );
    let rs_snowflake = Mutex::new(snowflake::SnowflakeIdGenerator::new(1, 1));
    add(
        "rs-snowflake in a mutex (12-bit sequence)",
        work(move || {
            rs_snowflake
                .lock()
                .expect("not poisoned")
                .generate()
                .unsigned_abs()
        }),
    );
}
