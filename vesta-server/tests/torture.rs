//! The shipped programs on every kind of store at once, while everything that can go wrong does so at
//! random: crashes, pauses, wrong clocks, lost and copied state folders, other users of a host, stores that
//! stop, die, refuse, fail over and go back. Everything that any caller received is compared as (machine,
//! position).
//!
//! A seed decides the faults: `VESTA_TEST_SEED=7`. `VESTA_TEST_SECONDS=60` sets the length. Stores on the
//! network take part if their VESTA_TEST_… variable is set; the torture starts servers of its own, since
//! it kills them.

#[path = "torture/callers.rs"]
mod callers;
#[path = "torture/fleet.rs"]
mod fleet;
#[path = "torture/front.rs"]
mod front;
#[path = "torture/ledger.rs"]
mod ledger;
#[path = "torture/ledger_tests.rs"]
mod ledger_tests;
#[path = "torture/plan.rs"]
mod plan;
#[path = "torture/process.rs"]
mod process;
#[path = "torture/rest.rs"]
mod rest;
#[path = "torture/run.rs"]
mod run;
#[path = "torture/servers.rs"]
mod servers;
#[path = "torture/watch.rs"]
mod watch;
#[path = "torture/world.rs"]
mod world;
