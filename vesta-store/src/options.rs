//! How a store is opened.

use std::time::Duration;

/// How a store is opened, beside what its URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether tables, keys and znodes that are missing are created. Otherwise a missing one is an
    /// error that says how to create it.
    pub auto_init: bool,
    /// How long one request may take; `None` for the store's own default, which is
    /// [`LeaseStore::timing`](vesta_service::LeaseStore::timing)'s.
    pub request_timeout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self { auto_init: true, request_timeout: None }
    }
}
