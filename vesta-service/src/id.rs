//! The generation kernel: the rules for time and sequence, the guarded position, and the current tick.

pub(crate) mod gate;
pub(crate) mod populator;
pub(crate) mod sequence;
pub(crate) mod ticks;
