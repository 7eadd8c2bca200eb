//! Moves from other systems: the requests of their clients are answered byte for byte, and their servers and
//! ours use the same tables at the same time. Also what the program says about tables of users: SQL, audits.

#[path = "../../../vesta-store/tests/originals/mod.rs"]
mod originals;

#[cfg(feature = "all-stores")]
mod audit;
mod http;
mod machines;
mod of_mysql;
mod of_zookeeper;
mod programs;
#[cfg(feature = "all-stores")]
mod sql;
