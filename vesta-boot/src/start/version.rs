//! Version of the program, as people read it.

/// Version, with a note in a build that is much slower than a released one: what `cargo run` makes.
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
