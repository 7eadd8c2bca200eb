//! Outcomes of creating a tag.

use vesta_intf::IdError;

/// Outcome of creating a tag. One that exists stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The tag is new.
    New,
    /// It existed, with the requested definition.
    Same,
    /// It existed, with another definition.
    Another,
}

impl Created {
    /// True for a new tag, false for one that existed with this definition.
    ///
    /// # Errors
    /// [`IdError::AlreadyExists`] if it existed with another definition.
    pub fn is_new(self, tag: &str) -> Result<bool, IdError> {
        match self {
            Self::New => Ok(true),
            Self::Same => Ok(false),
            Self::Another => Err(IdError::AlreadyExists {
                what: format!("tag `{tag}`").into(),
            }),
        }
    }
}
