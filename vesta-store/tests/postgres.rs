//! postgres keeps the promises of every store.
