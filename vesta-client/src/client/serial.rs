//! Serials: always requested from the servers.

use std::sync::Arc;

use vesta_intf::{IdError, ParsedSerial};

use super::Client;
use crate::remote::Remote;
use crate::serial::Serial;
use vesta_intf::check_tag;

impl Client {
    /// A handle of a serial tag, for any number of its serials. Sends nothing.
    ///
    /// # Errors
    /// [`IdError::Invalid`] unless the tag has 1 to 128 characters. The servers are not asked yet: if they do not know the
    /// tag, the calls of the handle return the error.
    pub fn serial(&self, tag: &str) -> Result<SerialTag, IdError> {
        check_tag(tag)?;
        Ok(SerialTag {
            tag: tag.into(),
            remote: Arc::clone(&self.shared.remote),
        })
    }
}

/// Handle of one serial tag, created by [`Client::serial`].
///
/// A clone is cheap and shares everything. The handle outlives the `Client`, and works for as long as the runtime in
/// which the client was built.
///
/// Each call asks a server. Nothing is prefetched, because the date in a serial is that of the request. The local
/// service ([`fallback`](crate::Builder::fallback)) never takes over: it does not know these numbers.
///
/// No serial is issued twice, by any server. The counters of one server increase within a period; several servers have
/// their own ranges. Attempts whose response was lost, and dropped calls, leave gaps.
#[derive(Debug, Clone)]
pub struct SerialTag {
    tag: Arc<str>,
    remote: Arc<Remote>,
}

impl SerialTag {
    /// The tag's name.
    pub fn name(&self) -> &str {
        &self.tag
    }

    /// A new serial.
    ///
    /// # Errors
    /// * [`IdError::NotFound`]: the servers know no such tag (they learn of new ones within a minute).
    /// * [`IdError::Unsupported`]: the server has no serials, or not the key of the tag.
    /// * [`IdError::Unavailable`], also if the counter has outgrown its digits, until the next period.
    /// * Otherwise as for [`gen_id`](vesta_intf::AsyncIdService::gen_id).
    pub async fn next(&self) -> Result<Serial, IdError> {
        // The list has exactly one.
        Ok(self.next_many(1).await?.swap_remove(0))
    }

    /// `count` new serials in one call, ordered by counter. A call that spans midnight returns serials of two days.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 10,000; otherwise as for [`next`](Self::next).
    pub async fn next_many(&self, count: u32) -> Result<Vec<Serial>, IdError> {
        self.remote.next_serials(&self.tag, count).await
    }

    /// Parses a serial of this tag and returns its counter before shuffling. It does not check that the serial was ever
    /// issued.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `serial`, with the first position that does not fit the pattern, or if its check symbol
    /// is wrong; otherwise as for [`next`](Self::next).
    pub async fn parse(&self, serial: &str) -> Result<ParsedSerial, IdError> {
        self.remote.parse_serial(&self.tag, serial).await
    }
}
