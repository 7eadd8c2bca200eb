//! The stores on the network: servers of the torture's own, from `scripts/stores.sh`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use tempfile::TempDir;

use crate::front::Front;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/stores.sh");
const ALL: [&str; 5] = ["mysql", "postgres", "redis", "zookeeper", "etcd"];
/// Stores that can have a replica which is promoted by hand.
const REPLICATED: [&str; 3] = ["mysql", "postgres", "redis"];
/// What an administrator does by mistake, and how it is repaired.
const MISTAKES: [(&str, &str, &str); 2] = [
    (
        "mysql",
        "RENAME TABLE vesta_kv TO vesta_kv_of_before",
        "RENAME TABLE vesta_kv_of_before TO vesta_kv",
    ),
    ("postgres", "REVOKE ALL ON vesta_kv FROM vesta", "GRANT ALL ON vesta_kv TO vesta"),
];

/// Servers below one folder. Dropping it stops them.
pub(crate) struct Servers {
    folder: TempDir,
    pub(crate) names: Vec<&'static str>,
    replicated: Vec<&'static str>,
}

impl Servers {
    /// Starts those whose variable says that they are present.
    pub(crate) fn start(may_fail_over: bool) -> Self {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("own.");
        // Where the test command looks for what is left behind.
        let folder = match std::env::var_os("VESTA_TEST_STORES") {
            Some(stores) => builder.tempdir_in(stores),
            None => builder.tempdir(),
        };
        let present = |name: &&str| std::env::var_os(variable(name)).is_some();
        let names: Vec<_> = ALL.into_iter().filter(present).collect();
        let replicated = REPLICATED.into_iter().filter(present);
        let replicated = replicated.filter(|_| may_fail_over && knows_replicas()).collect();
        let servers = Self { folder: folder.expect("a folder"), names, replicated };
        if !servers.names.is_empty() {
            script("start", servers.folder.path(), &servers.names);
        }
        servers
    }

    /// True if the store can have a replica that takes its place.
    pub(crate) fn can_fail_over(&self, name: &str) -> bool {
        self.replicated.contains(&name)
    }

    /// True if an administrator can take the tables away.
    pub(crate) fn can_refuse(name: &str) -> bool {
        MISTAKES.iter().any(|(store, ..)| *store == name)
    }

    /// A store's URL, and who may stop it.
    pub(crate) fn switch(&self, name: &'static str) -> (String, Switch) {
        let folder = self.folder.path().to_owned();
        let mut url = url(&folder, name);
        let front = self.can_fail_over(name).then(|| {
            let front = Front::start(port(&url));
            url = url.replacen(&format!(":{}", port(&url)), &format!(":{}", front.port), 1);
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
                    let _ = try_script("sql", &folder, &[&serving, text]);
                    continue;
                }
                let of_replica = ["replica", "lag", "promote"].contains(&command);
                script(command, &folder, &[if of_replica { name } else { &serving }]);
                if let ("promote", Some(front)) = (command, &front) {
                    serving = format!("{name}-replica");
                    front.point_to(port(&self::url(&folder, &serving)));
                }
            }
        });
        (url, Switch { commands: Some(commands), thread: Some(thread) })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let (stopped, said) = try_script("stop", self.folder.path(), &[]);
        if !stopped {
            eprintln!("{} was not stopped: {said}", self.folder.path().display());
        }
    }
}

/// Carries out the commands for one store, one after the other. Dropping it waits for the last.
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
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "a store did not obey");
    }
}

fn variable(store: &str) -> String {
    format!("VESTA_TEST_{}", store.to_uppercase().replace('-', "_"))
}

fn url(folder: &Path, store: &str) -> String {
    let lines = script("env", folder, &[]);
    let start = format!("export {}='", variable(store));
    let url = lines.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('\''));
    url.unwrap_or_else(|| panic!("no URL of {store} in {lines}")).to_owned()
}

fn port(url: &str) -> u16 {
    let place = url.rsplit('@').next().unwrap_or(url);
    let port = place.split('/').next().and_then(|place| place.rsplit(':').next());
    port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port in {place}"))
}

/// True if the script can make a replica and have it take over.
fn knows_replicas() -> bool {
    let help = Command::new(SCRIPT).arg("--help").output().expect("scripts/stores.sh runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    ["replica", "lag", "promote"].iter().all(|word| help.contains(&format!("stores.sh {word} DIR")))
}

/// Its output.
fn script(command: &str, folder: &Path, stores: &[&str]) -> String {
    let (done, said) = try_script(command, folder, stores);
    assert!(done, "stores.sh {command} {stores:?}: {said}");
    said
}

/// Its success, and its output.
fn try_script(command: &str, folder: &Path, stores: &[&str]) -> (bool, String) {
    let mut script = Command::new(SCRIPT);
    script.arg(command).arg(folder).args(stores).stdin(Stdio::null());
    let done = script.output().expect("scripts/stores.sh runs");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    (done.status.success(), said)
}
