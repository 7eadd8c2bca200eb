//! The program as people start it: its settings, its words, its signals, its exit codes.

#[path = "program/life.rs"]
mod life;
#[path = "program/settings.rs"]
mod settings;
#[path = "program/support.rs"]
mod support;
