//! Whatever comes in: texts that should be IDs, and numbers that should be a layout.

#[path = "../../../scripts/fuzz/texts.rs"]
mod texts;

mod ids;
mod layouts;
