//! Moves from other systems: the requests of their clients are answered byte for byte, and their servers and
//! ours use the same tables at the same time.

#[path = "../../../vesta-store/tests/originals/mod.rs"]
mod originals;

mod http;
mod machines;
mod of_mysql;
mod of_zookeeper;
mod programs;
