//! mysql keeps the promises of every store.
