//! Headers of the caller's trace, sent with each call.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::metadata::{Ascii, MetadataKey, MetadataMap};

use crate::secret::Secret;

/// A function of the embedding program that adds the headers of the trace which its caller works in.
type Inject = dyn Fn(&mut HashMap<String, String>) + Send + Sync;

#[derive(Debug, Clone)]
pub(crate) struct Trace(Secret<Arc<Inject>>);

impl Trace {
    pub(crate) fn new(
        inject: impl Fn(&mut HashMap<String, String>) + Send + Sync + 'static,
    ) -> Self {
        Self(Secret(Arc::new(inject)))
    }

    /// Headers of the trace of this task or thread. Entries that are no valid headers are left out.
    pub(crate) fn now(&self) -> MetadataMap {
        let (mut headers, mut metadata) = (HashMap::new(), MetadataMap::new());
        (self.0.0)(&mut headers);
        for (name, value) in headers {
            let name = MetadataKey::<Ascii>::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, value.parse()) {
                metadata.insert(name, value);
            }
        }
        metadata
    }
}

tokio::task_local! {
    /// Headers of the thread that waits for a call of the blocking client.
    pub(crate) static OF_CALLER: MetadataMap;
}
