//! Support shared by several tests.
#![allow(dead_code, unreachable_pub, reason = "not every test needs all of it")]

pub mod setting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vesta_explain::layouts;
use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::IdMeta;
use vesta_service::contract::{Id, UnixMillis};
use vesta_service::lease::{Cas, Leases, Record};
use vesta_service::testing::MemoryStore;

/// A moment in 2023, inside every tested layout.
pub const START: UnixMillis = UnixMillis(1_700_000_000_000);

/// The machine IDs of the namespace that services have by default.
pub fn leases(store: &Arc<MemoryStore>) -> Leases {
    Leases::new(store.clone(), "default")
}

/// Creates a record, or replaces an existing one, and marks it.
pub fn put(leases: &Leases, machine: u64, record: &Record) {
    let seen = leases.snapshot().expect("an open namespace");
    let done = leases.change(machine, seen.records.get(&machine), record);
    assert_eq!(done.expect("memory"), Cas::Done);
    assert!(leases.mark_birth(&seen, machine, record).expect("memory"));
}

/// Every named layout that generates IDs, and two custom ones: a sequence that is soon used up, and no
/// machine bits at all.
pub fn generating_layouts() -> Vec<IdMeta> {
    let own = |time_bits, seq_bits, machine_bits, order, unit| LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits,
        seq_bits,
        machine_bits,
        order,
        unit,
        epoch: START_OF_2023,
    };
    let short = own(40, 4, 3, FieldOrder::TimeSeqMachine, TimeUnit::Millisecond);
    let alone = own(39, 9, 0, FieldOrder::TimeMachineSeq, TimeUnit::TenMillis);
    // The other foreign layouts add no further shape.
    let foreign = [layouts::DISCORD, layouts::INSTAGRAM, layouts::SONYFLAKE];
    let known = IdMeta::PRESETS.into_iter().chain(foreign);
    let layouts: Vec<_> = known
        .chain([short, alone].map(|spec| IdMeta::new(spec).expect("it adds up")))
        .collect();
    assert_eq!(
        layouts.len(),
        5 + 3 + 2,
        "presets, foreign ones, custom ones"
    );
    layouts
}

/// An epoch for custom layouts.
pub const START_OF_2023: UnixMillis = UnixMillis(1_672_531_200_000);

/// Records which positions were seen, one bit each.
pub struct Seen {
    seq_bits: u32,
    first_tick: u64,
    bits: Vec<AtomicU64>,
}

impl Seen {
    /// Covers `ticks` ticks, beginning with the tick of `first`.
    pub fn new(meta: &IdMeta, first: UnixMillis, ticks: u64) -> Self {
        let seq_bits = u32::from(meta.spec().seq_bits);
        let words = (ticks << seq_bits).div_ceil(64);
        Self {
            seq_bits,
            first_tick: meta.tick_at(first).expect("inside the layout"),
            bits: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// `true` if the ID is seen for the first time.
    pub fn is_new(&self, id: &Id) -> bool {
        let at = (id.time - self.first_tick) << self.seq_bits | id.seq;
        let word = &self.bits[usize::try_from(at / 64).expect("fits")];
        let bit = 1 << (at % 64);
        word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// The number of distinct IDs seen.
    pub fn count(&self) -> u64 {
        self.bits
            .iter()
            .map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()))
            .sum()
    }
}
