//! Why a listener cannot be made.

/// One sentence: the fault and the remedy. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);
