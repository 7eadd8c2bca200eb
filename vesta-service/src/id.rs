//! The kernel: the rule about time and sequence, the position that is guarded, and the tick to go by.

pub(crate) mod gate;
pub(crate) mod populator;
pub(crate) mod runs;
pub mod sequence;
pub(crate) mod ticks;
