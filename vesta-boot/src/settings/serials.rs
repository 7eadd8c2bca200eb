//! Serials: off, or a store with tags, and the keys of those that are shuffled.

use std::path::PathBuf;

use vesta_store::StoreUrl;

use super::parse::{folder, store_url};
use crate::start::error::Error;

section! {
    /// Serials: the store of their tags, and the keys.
    #[non_exhaustive]
    "Serials" pub struct Serials |values, _layout| {
        /// Store of serial tags; turns serials on
        ///
        /// As for `machine.store`. A Redis has to be one that forgets nothing that it acknowledged.
        ///
        /// Example: mysql://user:password@host:3306/database
        pub store: Option<StoreUrl> = "serial.store" "URL" for commands, store_url;

        /// Folder of the keys of shuffled serials: TAG.key for each tag
        ///
        /// 64 hexadecimal digits, which only the owner and the group of the file may read. `serial create` makes
        /// a key that is missing. Keep a copy: without the key, a coupon looks like any guess.
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
