//! The program as people start it: its settings, its words, its signals, its exit codes.

#[path = "program/clocks.rs"]
mod clocks;
#[path = "program/crowd.rs"]
mod crowd;
#[path = "program/disks.rs"]
mod disks;
#[path = "program/ledger.rs"]
mod ledger;
#[path = "program/life.rs"]
mod life;
#[path = "program/segments.rs"]
mod segments;
#[path = "program/settings.rs"]
mod settings;
#[path = "program/stores.rs"]
mod stores;
#[path = "program/support.rs"]
mod support;
#[cfg(all(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper",
    feature = "etcd"
))]
#[path = "program/unreachable.rs"]
mod unreachable;
