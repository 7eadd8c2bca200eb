//! Another generator, configured for speed as its documentation describes.

use ferroid::define_snowflake_id;
use ferroid::generator::{AtomicSnowflakeGenerator, LockSnowflakeGenerator};
use ferroid::time::MonotonicClock;

use crate::{Row, floors, row};

define_snowflake_id!(
    RoomyId, u64,
    reserved: 1,
    timestamp: 41,
    machine_id: 2,
    sequence: 20
);

pub(crate) const BEST: &str = "ferroid 2 atomic, milliseconds";

pub(crate) fn rows() -> Vec<Row> {
    let epoch = std::time::Duration::from_millis(1_420_041_600_000);
    let clock = MonotonicClock::<1>::with_epoch(epoch);
    let atomic: &AtomicSnowflakeGenerator<RoomyId, _> =
        Box::leak(Box::new(AtomicSnowflakeGenerator::new(1, clock.clone())));
    let lock: &LockSnowflakeGenerator<RoomyId, _> =
        Box::leak(Box::new(LockSnowflakeGenerator::new(1, clock)));
    vec![
        row!(BEST, floors::ADD, {
            atomic.next_id(|_| std::hint::spin_loop()).to_raw()
        }),
        row!("ferroid 2 lock, milliseconds", floors::ADD, {
            lock.try_next_id(|_| std::hint::spin_loop())
                .expect("not poisoned")
                .to_raw()
        }),
    ]
}
