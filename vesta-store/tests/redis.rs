//! redis keeps the promises of every store.
