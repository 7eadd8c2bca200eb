//! The shipped programs on every kind of store at once, under random faults: crashes, pauses, wrong clocks,
//! lost and copied state directorys, other users of a host, and stores that stop, die, refuse, fail over and
//! roll back. Everything that any caller received is compared as (machine, position).
//!
//! A seed decides the faults: `VESTA_TEST_SEED=7`. `VESTA_TEST_SECONDS=60` sets the length. Networked
//! stores take part if their VESTA_TEST_… variable is set; the torture starts its own servers, because it
//! kills them.

mod callers;
mod fleet;
mod front;
mod plan;
mod pool_server;
mod process;
mod rest;
mod run;
mod servers;
mod watch;
mod world;
