//! Version of the program, for people.

/// Version, with a note in a debug build, as made by `cargo run`, which is much slower than a
/// release.
///
/// Figures are often taken from such a build by mistake.
pub const VERSION: &str = if cfg!(debug_assertions) {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (debug build: slower than a release)"
    )
} else {
    env!("CARGO_PKG_VERSION")
};
