//! Serials for code without `async`.

use vesta_intf::{IdError, ParsedSerial};

use super::{Blocking, Client};
use crate::client::SerialTag as AsyncSerialTag;
use crate::serial::Serial;

impl Client {
    /// A handle of a serial tag: see [`Client::serial`](crate::Client::serial).
    ///
    /// # Errors
    /// The same.
    pub fn serial(&self, tag: &str) -> Result<SerialTag, IdError> {
        let background = self.0.background.clone();
        Ok(SerialTag(Blocking {
            inner: self.0.inner.serial(tag)?,
            background,
        }))
    }
}

/// Handle of one serial tag: [`SerialTag`](crate::SerialTag) for code without `async`, created by
/// [`Client::serial`]. Calls wait for the client's deadline at most.
#[derive(Debug, Clone)]
pub struct SerialTag(Blocking<AsyncSerialTag>);

impl SerialTag {
    /// The tag's name.
    pub fn name(&self) -> &str {
        self.0.inner.name()
    }

    /// A new serial.
    ///
    /// # Errors
    /// As for [`SerialTag::next`](crate::SerialTag::next).
    pub fn next(&self) -> Result<Serial, IdError> {
        self.0.wait_for(|tag| async move { tag.next().await })
    }

    /// `count` new serials: see [`SerialTag::next_many`](crate::SerialTag::next_many).
    ///
    /// # Errors
    /// The same.
    pub fn next_many(&self, count: u32) -> Result<Vec<Serial>, IdError> {
        self.0
            .wait_for(move |tag| async move { tag.next_many(count).await })
    }

    /// Reads a serial of this tag: see [`SerialTag::parse`](crate::SerialTag::parse).
    ///
    /// # Errors
    /// The same.
    pub fn parse(&self, serial: &str) -> Result<ParsedSerial, IdError> {
        let serial = serial.to_owned();
        self.0
            .wait_for(|tag| async move { tag.parse(&serial).await })
    }
}
