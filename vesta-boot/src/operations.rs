//! Operations on a running program. A front adds to each its way of asking and answering.

use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{Id, IdError, MakeId};
use vesta_numbers::Created;

use crate::answers::Layout;
use crate::running::Running;

impl Running {
    /// The layout of new IDs, and the constant fields of this program's.
    ///
    /// # Errors
    /// [`IdError`] if the machine ID has been given back.
    pub fn layout(&self) -> Result<Layout, IdError> {
        Ok(Layout::new(self.service.meta(), &self.own_fields()?))
    }

    /// Default fields of an assembled ID: the program's own.
    ///
    /// # Errors
    /// As [`layout`](Self::layout).
    pub fn own_fields(&self) -> Result<Id, IdError> {
        let id = self.service.make_id(&MakeId::new(0, 0))?;
        self.service.meta().unpack(id)
    }
}

/// Creates a tag on a thread that may block: true if it is new, false if it existed with the same definition.
pub(crate) async fn created<E: std::error::Error + Send + Sync + 'static>(
    tag: &str,
    create: impl FnOnce() -> Result<Created, E> + Send + 'static,
    refused: impl FnOnce(E) -> Result<IdError, E>,
) -> Result<bool, IdError> {
    match tokio::task::spawn_blocking(create).await {
        Ok(Ok(created)) => created.is_new(tag),
        Ok(Err(error)) => Err(refused(error).unwrap_or_else(|error| IdError::Unavailable {
            // Callers have the scope admin: they may see what the store said.
            reason: format!("{error}: it is unknown whether the tag was created; ask again").into(),
            retry_after: Some(Duration::from_secs(1)),
            source: Some(Arc::new(error)),
        })),
        Err(panic) => Err(IdError::Internal {
            reason: "creating a tag failed".into(),
            source: Some(Arc::new(panic)),
        }),
    }
}
