//! Serials: off, or a store with tags, and the keys of those that are shuffled.

use std::path::PathBuf;

use clap::Args;
use vesta_store::StoreUrl;

use super::parse::{folder, store_url};
use crate::start::error::Error;

/// Serials: the store of their tags, and the keys.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Serials")]
#[group(skip)]
#[non_exhaustive]
pub struct Serials {
    /// Store of serial tags; turns serials on
    ///
    /// As for `machine.store`. A Redis has to be one that forgets nothing that it acknowledged.
    ///
    /// Example: mysql://user:password@host:3306/database
    #[arg(id = "serial.store", value_name = "URL", value_parser = store_url, global = true)]
    pub store: Option<StoreUrl>,

    /// Folder of the keys of shuffled serials: TAG.key for each tag
    ///
    /// 64 hexadecimal digits, which only the owner and the group of the file may read. `serial create` makes
    /// a key that is missing. Keep a copy: without it no coupon can be told from a guess.
    ///
    /// Example: /etc/vesta/keys
    #[arg(id = "serial.keys", value_name = "DIR", value_parser = folder, global = true)]
    pub keys: Option<PathBuf>,
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
