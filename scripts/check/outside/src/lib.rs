//! The code in docs/use/embed.md compiles outside of Vesta's workspace.

#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../../../../docs/use/embed.md")]
struct Embedding;
