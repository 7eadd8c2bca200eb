//! Serials: disabled, or a store with tags and the keys of the shuffled ones.

use std::path::PathBuf;

use vesta_store::StoreUrl;

use super::parse::{folder, store_url};
use crate::error::Error;

/// Refusal while serials are off.
pub const SERIALS_OFF: &str = "serials are off; set serial.store (--serial-store)";

section! {
    /// Serials: the store of their tags, and the keys.
    #[non_exhaustive]
    "Serials" pub struct Serials |values, _layout| {
        /// Store of serial tags; turns serials on
        ///
        /// Same URLs as `machine.store`. A Redis store must keep every acknowledged write.
        ///
        /// Example: mysql://user:password@host:3306/database
        pub store: Option<StoreUrl> = "serial.store" "URL" for commands, store_url;

        /// Folder of the keys of shuffled serials: TAG.key for each tag
        ///
        /// 64 hexadecimal digits; only the owner and the group of the file may read them. `serial create`
        /// creates a missing key. Keep a copy: without the key, valid coupons cannot be recognized.
        ///
        /// Example: /etc/vesta/keys
        pub keys: Option<PathBuf> = "serial.keys" "DIR" for commands, folder;
    }
}

impl Serials {
    /// Refuses settings of serials while they are off.
    pub(super) fn check(&self) -> Result<(), Error> {
        match (&self.store, &self.keys) {
            (None, Some(_)) => {
                Error::refuse("serial.keys is for serials, which are off; set serial.store too")
            }
            _ => Ok(()),
        }
    }
}
