//! The program as users run it: settings, messages, signals, exit codes.

mod clocks;
mod disks;
mod ledger;
mod lifecycle;
mod one_file;
#[cfg(target_os = "linux")]
mod one_host;
mod ordered;
mod overload;
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
