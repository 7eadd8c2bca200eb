//! New serial tags, from the command line and from callers over the network.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::IdError;
use vesta_numbers::serial::NewSerialTag;
use vesta_numbers::serial::{Pattern, Reset};
use vesta_service::BuildError;

use crate::running::Running;

/// Refusal where every caller could create tags.
const NEEDS_TOKENS: &str = "without tokens, callers cannot create tags: set [[auth.tokens]] with the scope admin, or \
                            use `vesta serial create`";

/// A serial tag to be created, unchecked.
#[derive(Debug, Clone, Default)]
pub struct NewSerialRequest {
    /// The tag's name.
    pub tag: String,
    /// The pattern of its serials.
    pub pattern: String,
    /// When its counter restarts.
    pub reset: Reset,
    /// The time zone of its dates.
    pub zone: Option<String>,
    /// Minimum counters per fetch.
    pub step: Option<u64>,
    /// The first counter of the current period; default 1.
    pub first: Option<u64>,
    /// The purpose of the tag.
    pub description: Option<String>,
    /// Maximum number of tags of a template; default 1,000.
    pub max_tags: Option<u64>,
}

impl NewSerialRequest {
    /// The tag, if it is right.
    pub(crate) fn checked(&self, pattern: Pattern) -> Result<NewSerialTag, IdError> {
        let mut new = NewSerialTag::new(&*self.tag, pattern, self.zone.as_deref())?;
        if let Some(step) = self.step {
            new = new.step(step)?;
        }
        if let Some(description) = &self.description {
            new = new.described_as(&**description)?;
        }
        if let Some(most) = self.max_tags {
            new = new.max_tags(most)?;
        }
        new.starting_at(self.first.unwrap_or(1))
    }

    /// Creates the tag, for a caller over the network. Returns `false` if it exists with this definition.
    ///
    /// # Errors
    /// [`IdError::AlreadyExists`] if it exists with another definition;
    /// [`IdError::Unsupported`] if serials are off, or callers need no tokens; [`IdError::Invalid`] and
    /// [`IdError::OutOfRange`] for a wrong tag, also for one that shuffles, which needs a key on every server;
    /// [`IdError::Unavailable`] if it is unknown whether the tag was created.
    pub async fn create(&self, running: &Running) -> Result<bool, IdError> {
        let serials = Arc::clone(running.serials()?);
        if running.security.auth.is_none() {
            let what = NEEDS_TOKENS.into();
            return Err(IdError::Unsupported { what });
        }
        let pattern = Pattern::new(&self.pattern, self.reset)?;
        if pattern.is_shuffled() {
            let reason =
                "a shuffled counter needs a key on every server: use `vesta serial create`";
            return Err(IdError::invalid("pattern", reason));
        }
        let tag = self.checked(pattern)?;
        let created = tokio::task::spawn_blocking(move || serials.create(&tag)).await;
        match created {
            Ok(Ok(created)) => created.is_new(&self.tag),
            Ok(Err(BuildError::Setting(error))) => Err(error),
            Ok(Err(error)) => Err(IdError::Unavailable {
                reason: "the store of serials failed: it is unknown whether the tag was created; ask again".into(),
                retry_after: Some(Duration::from_secs(1)),
                source: Some(Arc::new(error)),
            }),
            Err(panic) => Err(IdError::Internal {
                reason: "creating a tag failed".into(),
                source: Some(Arc::new(panic)),
            }),
        }
    }
}
