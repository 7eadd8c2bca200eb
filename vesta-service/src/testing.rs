//! Fakes for tests, of Vesta and of programs that use it.

mod clock;
mod segments;

pub use clock::ManualClock;
pub use segments::MemorySegmentStore;
