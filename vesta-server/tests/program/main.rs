//! The program as users run it: settings, messages, signals, exit codes.

mod clocks;
#[cfg(target_os = "linux")]
mod containers;
mod copies;
mod disks;
mod ledger;
mod lifecycle;
mod one_file;
#[cfg(target_os = "linux")]
mod one_host;
mod ordered;
mod overload;
mod owners;
mod secure;
mod segments;
mod settings;
mod stores;
mod support;
#[cfg(all(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper",
    feature = "etcd"
))]
mod unreachable;
#[cfg(target_os = "linux")]
mod unread_lists;
