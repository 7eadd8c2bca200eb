//! Arbitrary input: texts that should be IDs, and numbers that should form a layout.

#[path = "../../../scripts/check/fuzz/texts.rs"]
mod texts;

mod ids;
mod layouts;
