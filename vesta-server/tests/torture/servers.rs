//! The networked stores: the torture's own servers, from `vesta_testkit::stores`.

use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use vesta_testkit::fleet::StoreServers;

use crate::front::Front;

const ALL: [&str; 6] = [
    "mysql",
    "postgres",
    "redis",
    "zookeeper",
    "etcd",
    "pool_server",
];
/// Stores that can have a replica, promoted by hand.
const REPLICATED: [&str; 3] = ["mysql", "postgres", "redis"];
/// Mistakes of an administrator, and their repairs.
const MISTAKES: [(&str, &str, &str); 2] = [
    (
        "mysql",
        "RENAME TABLE vesta_kv TO vesta_kv_of_before",
        "RENAME TABLE vesta_kv_of_before TO vesta_kv",
    ),
    (
        "postgres",
        "REVOKE ALL ON vesta_kv FROM vesta",
        "GRANT ALL ON vesta_kv TO vesta",
    ),
];

/// The servers of this run.
pub(crate) struct Servers {
    servers: StoreServers,
    pub(crate) names: Vec<&'static str>,
    may_fail_over: bool,
}

impl Servers {
    /// Starts the servers whose variable is set.
    pub(crate) fn start(may_fail_over: bool) -> Self {
        let names: Vec<_> = ALL
            .into_iter()
            .filter(|name| StoreServers::is_present(name))
            .collect();
        Self {
            servers: StoreServers::start(&names),
            names,
            may_fail_over,
        }
    }

    /// True if the store can have a replica that takes over.
    pub(crate) fn can_fail_over(&self, name: &str) -> bool {
        self.may_fail_over && REPLICATED.contains(&name) && self.names.contains(&name)
    }

    /// True if an administrator can take the tables away.
    pub(crate) fn can_refuse(name: &str) -> bool {
        MISTAKES.iter().any(|(store, ..)| *store == name)
    }

    /// A store's URL, and the switch that may stop it.
    pub(crate) fn switch(&self, name: &'static str) -> (String, Switch) {
        let folder = self.servers.folder().to_owned();
        let mut url = StoreServers::url(&folder, name);
        let front = self.can_fail_over(name).then(|| {
            let server = StoreServers::address(&url).expect("a server");
            let front = Front::start(server);
            url = url.replace(&server.to_string(), &front.address.to_string());
            front
        });
        let (commands, received) = channel::<&'static str>();
        let thread = thread::spawn(move || {
            let mut serving = name.to_owned();
            for command in received {
                if let Some((_, refuse, accept)) =
                    MISTAKES.iter().find(|(store, ..)| *store == name)
                    && let Some(text) = [("refuse", refuse), ("accept", accept)]
                        .into_iter()
                        .find_map(|(known, text)| (known == command).then_some(text))
                {
                    // A server that is down refuses, too.
                    let _ = StoreServers::run_in(&folder, "sql", &[&serving, text]);
                    continue;
                }
                let of_replica = ["replica", "lag", "promote"].contains(&command);
                let server = if of_replica { name } else { &serving };
                StoreServers::run_in(&folder, command, &[server])
                    .unwrap_or_else(|said| panic!("{command} {server}: {said}"));
                if let ("promote", Some(front)) = (command, &front) {
                    serving = format!("{name}-replica");
                    let url = StoreServers::url(&folder, &serving);
                    front.point_to(StoreServers::address(&url).expect("a server"));
                }
            }
        });
        (
            url,
            Switch {
                commands: Some(commands),
                thread: Some(thread),
            },
        )
    }
}

/// Carries out the commands for one store in order. Dropping it waits for the last.
pub(crate) struct Switch {
    commands: Option<Sender<&'static str>>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    pub(crate) fn run(&self, command: &'static str) {
        let commands = self.commands.as_ref().expect("it is not dropped");
        commands.send(command).expect("a store did not obey");
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.commands = None;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || matches!(ended, Some(Ok(()))),
            "a store did not obey"
        );
    }
}
