//! The program as users run it: settings, messages, signals, exit codes.

#[path = "program/clocks.rs"]
mod clocks;
#[path = "program/disks.rs"]
mod disks;
#[path = "program/ledger.rs"]
mod ledger;
#[path = "program/lifecycle.rs"]
mod lifecycle;
#[path = "program/one_file.rs"]
mod one_file;
#[cfg(target_os = "linux")]
#[path = "program/one_host.rs"]
mod one_host;
#[path = "program/overload.rs"]
mod overload;
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
