//! Fakes for tests, of Vesta and of programs that use it.

mod clock;
mod segments;
mod store;

pub use clock::ManualClock;
pub use segments::MemorySegmentStore;
pub use store::MemoryStore;
