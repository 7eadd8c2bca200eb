//! Serials: always asked for at the servers.

use std::sync::Arc;

use vesta_intf::{IdError, ParsedSerial};

use super::Client;
use crate::remote::{Remote, check_name};

/// A serial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// As its pattern writes it: `INV-261122-0000427`.
    pub text: String,
    /// The counter of its period, as it was before it was shuffled.
    pub n: u64,
}

impl Client {
    /// A handle of a serial tag, for as many serials of it as are wanted. Nothing is sent.
    ///
    /// # Errors
    /// [`IdError::Invalid`] unless the tag has 1 to 128 bytes. Whether the servers know the tag shows
    /// only when they are called: the calls of the handle return the error.
    pub fn serial(&self, tag: &str) -> Result<SerialTag, IdError> {
        check_name("tag", tag)?;
        Ok(SerialTag {
            tag: tag.into(),
            remote: Arc::clone(&self.shared.remote),
        })
    }
}

/// Handle of one serial tag, created by [`Client::serial`].
///
/// A clone is cheap and shares everything. It outlives the `Client`, and works for as long as the runtime
/// in which that was built.
///
/// Each call asks a server: nothing is prefetched, as the date in a serial is to be that of the moment at
/// which it is asked for. The local service ([`fallback`](crate::Builder::fallback)) never stands in: it
/// does not know these numbers.
///
/// No serial is given out twice, by any server. The counters of one server increase within a period;
/// several servers have ranges of their own. Attempts whose response was lost, and calls that were dropped,
/// leave gaps.
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
        // There is exactly one.
        Ok(self.next_many(1).await?.swap_remove(0))
    }

    /// `count` new serials in one call, in the order of their counters. Those of a call that goes on over
    /// midnight are of two days.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 10,000; otherwise as for [`next`](Self::next).
    pub async fn next_many(&self, count: u32) -> Result<Vec<Serial>, IdError> {
        self.remote.next_serials(&self.tag, count).await
    }

    /// Reads a serial of this tag, with its counter as it was before it was shuffled. It is not known
    /// whether it was ever given out.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `serial`, with the position of what does not fit the pattern, or if its
    /// check symbol is wrong; otherwise as for [`next`](Self::next).
    pub async fn parse(&self, serial: &str) -> Result<ParsedSerial, IdError> {
        self.remote.parse_serial(&self.tag, serial).await
    }
}
