//! Identity of a caller.

/// Caller identity: index of its token in the settings, or anonymous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller(pub Option<usize>);
