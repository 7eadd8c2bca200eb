//! Moves from other systems: Vesta answers the requests of their clients byte for byte, and both servers use
//! the same tables at the same time. Also the program's SQL and audits of users' tables.

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
