//! Services and their machine IDs: unique in every layout and under every fault of clocks, stores and hosts.

mod common;

#[cfg(feature = "async")]
mod async_calls;
mod blocks;
mod capacity;
mod claims;
mod clock_faults;
mod cut_off;
mod disposable_machine_ids;
mod doubts;
mod earlier_states;
mod entries;
mod floors;
mod forgetful_stores;
mod fronts;
mod fuzz;
mod history;
mod keeper_thread;
mod layouts;
mod leases;
mod machine_count;
mod many_machine_ids;
mod regions;
mod retry_times;
mod root;
mod standby;
mod state_file;
mod two_stores;
mod uniqueness;
mod writers;
