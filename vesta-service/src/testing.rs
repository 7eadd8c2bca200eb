//! Fakes for tests of Vesta and of programs that use it.

mod clock;
mod flaky;
mod intercept;
mod store;

pub use clock::ManualClock;
pub use flaky::FlakyStore;
pub use intercept::{Answer, Intercept, Request};
pub use store::MemoryStore;
