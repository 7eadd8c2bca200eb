//! Operations of serials.

use std::sync::Arc;

use vesta_intf::IdError;
use vesta_numbers::serial::SerialTag;
use vesta_service::BuildError;

use super::{NewSerial, Serial, SerialCreated, SerialParsed};
use crate::operations::created;
use crate::running::Running;

/// Refusal where every caller could create tags.
const NEEDS_TOKENS: &str = "without tokens, callers cannot create tags: set [[auth.tokens]] with the scope admin, or \
                            use `vesta serial create`";

impl Running {
    /// A serial tag, made from a template if it is missing and its name matches one.
    async fn serial_tag(&self, name: &str) -> Result<SerialTag, IdError> {
        let serials = self.serials()?;
        match serials.tag_async(name).await {
            Err(IdError::NotFound { .. }) if serials.has_template(name) => {}
            found => return found,
        }
        let (serials, name) = (Arc::clone(serials), name.to_owned());
        let made = tokio::task::spawn_blocking(move || serials.tag_or_made(&name)).await;
        made.unwrap_or_else(|panic| {
            Err(IdError::Internal {
                reason: "making a tag from its template failed".into(),
                source: Some(Arc::new(panic)),
            })
        })
    }

    /// New serials of a tag, which may be made for this call.
    ///
    /// # Errors
    /// As [`serials`](Self::serials); [`IdError::NotFound`] for an unknown tag; [`IdError::UsedUp`] and
    /// [`IdError::Unavailable`] if there is no serial.
    pub async fn next_serials(&self, tag: &str, count: u32) -> Result<Vec<Serial>, IdError> {
        let serials = self.serial_tag(tag).await?.next_many_async(count).await?;
        Ok(serials.into_iter().map(Serial::from).collect())
    }

    /// The decoded parts of a serial.
    ///
    /// # Errors
    /// As [`serials`](Self::serials); [`IdError::NotFound`] for an unknown tag; [`IdError::Invalid`] for a wrong
    /// serial.
    pub async fn parse_serial(&self, tag: &str, serial: &str) -> Result<SerialParsed, IdError> {
        let serials = self.serials()?;
        let parsed = serials.tag_async(tag).await?.parse(serial)?;
        Ok(SerialParsed::new(tag, parsed))
    }

    /// Creates a serial tag for a caller over the network, unless it exists.
    ///
    /// # Errors
    /// [`IdError::AlreadyExists`] if it exists with another definition;
    /// [`IdError::Unsupported`] if serials are off, or callers need no tokens; [`IdError::Invalid`] and
    /// [`IdError::OutOfRange`] for a wrong tag, also for one that shuffles, which needs a key on every server;
    /// [`IdError::Unavailable`] if it is unknown whether the tag was created.
    pub async fn create_serial(&self, new: NewSerial) -> Result<SerialCreated, IdError> {
        let serials = Arc::clone(self.serials()?);
        if self.security.auth.is_none() {
            let what = NEEDS_TOKENS.into();
            return Err(IdError::Unsupported { what });
        }
        let pattern = new.checked_pattern()?;
        if pattern.is_shuffled() {
            let reason =
                "a shuffled counter needs a key on every server: use `vesta serial create`";
            return Err(IdError::invalid("pattern", reason));
        }
        let tag = new.checked(pattern)?;
        let refused = |error| match error {
            BuildError::Setting(error) => Ok(error),
            error => Err(error),
        };
        let created = created(&new.tag, move || serials.create(&tag), refused).await?;
        Ok(SerialCreated {
            tag: new.tag,
            created,
        })
    }
}
