//! Real processes on real stores: killed, paused, started concurrently, cut off from their store.
//! Their IDs are checked for duplicates. The processes are this test program itself.
//!
//! The stores come from the environment (`scripts/test.sh` sets it); tests that stop a server start
//! their own. With `VESTA_TEST_FULL` they do more rounds. `--nocapture` shows the figures.
#![cfg_attr(
    not(any(
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "zookeeper",
        feature = "etcd",
        feature = "pool-server"
    )),
    allow(dead_code, unused_macros, reason = "needed for servers only")
)]

#[cfg(feature = "mysql")]
mod beside;
mod failovers;
#[cfg(feature = "sqlite")]
mod files;
#[cfg(feature = "zookeeper")]
#[path = "../workers/mod.rs"]
mod foreign;
mod kills;
#[cfg(feature = "mysql")]
#[path = "../originals/mod.rs"]
mod originals;
mod outages;
mod owners;
#[cfg(feature = "postgres")]
mod poolers;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod refusals;
mod secrets;
#[allow(dead_code, reason = "the stores of this build may keep no tags")]
mod segments;
mod server;
#[allow(dead_code, reason = "rows of stores that are left out of this build")]
mod stores;
mod worker;
#[cfg(feature = "zookeeper")]
mod workers;
mod world;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod writers;

/// Generates a test of each scenario with this store.
macro_rules! on {
    ($store:expr; $($module:ident: $($scenario:ident)*;)*) => {
        $($(
            #[test]
            fn $scenario() {
                crate::$module::$scenario(&$store);
            }
        )*)*
    };
}

macro_rules! on_any {
    ($store:expr) => {
        on! { $store;
            kills:
                no_id_repeats_when_processes_are_killed
                a_crash_loop_does_not_use_up_a_pool;
            owners:
                two_starters_at_once_get_different_machine_ids
                a_used_up_pool_names_the_holders;
        }
    };
}

macro_rules! on_a_server {
    ($store:expr) => {
        on_any!($store);
        on! { $store;
            owners: a_paused_owner_repeats_nothing_of_its_successor;
            outages:
                an_outage_within_the_window_costs_nothing_and_recovery_is_automatic
                long_outages_with_the_durations_of_the_store;
            secrets: passwords_are_never_shown;
        }
    };
}

#[allow(unused_macros, reason = "the stores of this build may keep no tags")]
macro_rules! on_segments {
    ($store:expr) => {
        on! { $store;
            segments: four_servers_take_ten_million_numbers_of_one_tag_and_none_repeats;
        }
    };
}

#[allow(unused_macros, reason = "the stores of this build may keep no tags")]
macro_rules! on_segments_of_a_server {
    ($store:expr) => {
        on_segments!($store);
        on! { $store;
            segments: nothing_repeats_while_calls_wait_for_unreachable_tags;
        }
    };
}

#[allow(unused_macros, reason = "the stores of this build may keep no tables")]
macro_rules! on_a_database {
    ($store:expr) => {
        on! { $store;
            refusals:
                a_server_that_replicates_from_another_is_refused
                a_server_that_becomes_a_replica_is_unused_until_primary_again
                a_restart_leaves_no_empty_table_in_place_of_a_renamed_one
                a_refusal_ends_neither_holders_nor_waiting_starters
                nothing_repeats_while_calls_wait_for_refused_tags;
            writers: another_server_is_refused_or_doubted;
        }
    };
}

macro_rules! on_a_server_with_a_replica {
    ($store:expr) => {
        on! { $store;
            failovers:
                nothing_repeats_when_a_lagging_replica_takes_over
                nothing_repeats_when_a_replica_without_the_namespace_takes_over
                a_disposable_number_repeats_after_a_fail_over_to_a_lagging_replica;
        }
    };
}

mod processes {
    #[cfg(feature = "sqlite")]
    mod sqlite {
        on_any!(crate::stores::SQLITE);
        on_segments!(crate::stores::SQLITE);
        on! { crate::stores::SQLITE;
            owners: a_paused_owner_of_this_host_keeps_its_machine_id;
            files:
                nothing_repeats_while_calls_wait_for_locked_tags
                a_range_that_is_handed_out_twice_is_found;
        }
    }
    #[cfg(feature = "mysql")]
    mod mysql {
        on_a_server!(crate::stores::MYSQL);
        on_a_server_with_a_replica!(crate::stores::MYSQL);
        on_a_database!(crate::stores::MYSQL);
        on_segments_of_a_server!(crate::stores::MYSQL);
        on! { crate::stores::MYSQL;
            beside:
                servers_of_tinyid_and_vesta_share_a_row_while_each_is_killed
                servers_of_leaf_and_vesta_share_a_row_while_each_is_killed
                servers_of_cosid_and_vesta_share_a_row_while_each_is_killed;
        }
    }
    #[cfg(feature = "postgres")]
    mod postgres {
        on_a_server!(crate::stores::POSTGRES);
        on_a_server_with_a_replica!(crate::stores::POSTGRES);
        on_a_database!(crate::stores::POSTGRES);
        on_segments_of_a_server!(crate::stores::POSTGRES);
        on! { crate::stores::POSTGRES;
            poolers: processes_that_share_two_sessions_of_a_pooler_repeat_nothing;
        }
    }
    #[cfg(feature = "redis")]
    mod redis {
        on_a_server!(crate::stores::REDIS);
        on! { crate::stores::REDIS;
            failovers:
                nothing_repeats_when_a_lagging_replica_takes_over
                nothing_repeats_when_a_replica_without_the_namespace_takes_over
                nothing_repeats_when_a_restarted_replica_takes_over;
        }
        on_segments_of_a_server!(crate::stores::REDIS);
    }
    #[cfg(feature = "zookeeper")]
    mod zookeeper {
        on_a_server!(crate::stores::ZOOKEEPER);
        on! { crate::stores::ZOOKEEPER;
            workers: the_other_system_never_takes_the_number_of_a_paused_or_killed_process;
        }
    }
    #[cfg(feature = "etcd")]
    mod etcd {
        on_a_server!(crate::stores::ETCD);
    }
    #[cfg(feature = "pool-server")]
    mod pool_server {
        on_a_server!(crate::stores::POOL_SERVER);
        on_segments_of_a_server!(crate::stores::POOL_SERVER);
    }
}
