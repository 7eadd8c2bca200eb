//! Throw-away servers for the tests: MariaDB, PostgreSQL, Redis, ZooKeeper, etcd, PgBouncer, and vesta-server as a
//! pool server, built before. Each listens on a free loopback port, with data, random password and log in its own
//! folder below that of all. They are as durable as real ones. Missing programs are installed if apt-get can; nothing else on
//! this machine is touched. Linux only.

mod kind;
mod others;
mod process;
mod server;
mod sql;
mod tools;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::Signal;

use crate::fleet::free_ports;
use kind::Kind;
use server::Server;
use tools::{command, create_folder, output, write};

/// The command line.
pub const USAGE: &str = "\
stores COMMAND

  start DIR [STORE…]    default: mysql postgres redis zookeeper etcd pool_server. A killed one starts again with its
                        data and port
  env DIR               their URLs, as lines for `eval`: export VESTA_TEST_MYSQL=…
  stop DIR [STORE…]     stops what was started there; the data stays
  kill DIR STORE…       as a crash would: SIGKILL
  pause DIR STORE…      SIGSTOP: connections stay, but nothing answers
  resume DIR STORE…     SIGCONT
  replica DIR STORE…    gives mysql, postgres or redis an asynchronous replica, which is a separate store to all of
                        these: mysql-replica, …
  lag DIR STORE…        once the replica has caught up, cuts it off from its source
  promote DIR STORE…    makes the replica an independent server, with its data
  subscriber DIR        gives postgres a writable replica, by logical replication
  sql DIR STORE TEXT    has the administrator of mysql or postgres execute a text
  lacks STORE           prints why it cannot be started here; nothing if it can
  install               installs the missing programs of all stores

postgres starts under the command in POSTGRES_UNDER, if it is set: env LD_PRELOAD=…

`pgbouncer`, which must be named, is a pooler in front of the postgres of DIR: database vesta in transaction mode, with
two sessions for all, and vesta_session in session mode.
";

const ALL: [&str; 6] = [
    "mysql",
    "postgres",
    "redis",
    "zookeeper",
    "etcd",
    "pool_server",
];
const REPLICAS: [&str; 3] = ["mysql-replica", "postgres-replica", "redis-replica"];
const POOLER: &str = "pgbouncer";
/// Time limit of a start. A quiet machine needs less than 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// Carries out a command of [`USAGE`]; returns its output.
///
/// # Errors
/// The sentence of a failed command; [`USAGE`] if there is no such command.
pub fn carry_out(words: &[&str]) -> Result<String, String> {
    match words {
        ["-h" | "--help"] => return Ok(USAGE.to_owned()),
        ["install"] => {
            install([&ALL[..], &[POOLER]].concat().as_slice())?;
            return Ok(String::new());
        }
        ["lacks", name] => return Ok(lacks(name).map_or_else(String::new, |it| it + "\n")),
        _ => {}
    }
    let [command, folder, stores @ ..] = words else {
        return Err(USAGE.to_owned());
    };
    let (stores, text) = match (*command, stores) {
        ("sql", [store, text]) => (std::slice::from_ref(store), *text),
        ("sql", _) => return Err("sql wants a store and a text".to_owned()),
        _ => (stores, ""),
    };
    if let Some(name) = stores.iter().find(|name| Kind::of(name).is_none()) {
        let known = everything().join(" ");
        return Err(format!("there is no store {name}; known ones: {known}"));
    }
    if *command == "start" {
        create_folder(Path::new(folder))?;
    }
    let folder = fs::canonicalize(folder).map_err(|error| format!("{folder}: {error}"))?;
    let or_all = |all: Vec<&'static str>| match stores {
        [] => all,
        _ => stores.to_vec(),
    };
    match *command {
        "start" => {
            let under = std::env::var("POSTGRES_UNDER").unwrap_or_default();
            let under: Vec<_> = under.split_whitespace().map(str::to_owned).collect();
            start(&folder, &or_all(ALL.to_vec()), &under)?;
        }
        "stop" => stop(&folder, &or_all(everything()))?,
        "env" => return Ok(environment(&folder)),
        "sql" => return Ok(Server::started(&folder, stores[0])?.sql(text)? + "\n"),
        "subscriber" => subscriber(&folder)?,
        "kill" | "pause" | "resume" | "replica" | "lag" | "promote" if stores.is_empty() => {
            return Err(format!("{command} which? {}", ALL.join(" ")));
        }
        "kill" | "pause" | "resume" => {
            let signal = match *command {
                "kill" => Signal::KILL,
                "pause" => Signal::STOP,
                _ => Signal::CONT,
            };
            for name in stores {
                Server::at(&folder, name)?.running()?.signal_all(signal)?;
            }
        }
        "replica" | "lag" | "promote" => {
            for name in stores {
                let replica = format!("{name}-replica");
                if !REPLICAS.contains(&replica.as_str()) {
                    return Err(format!("{name} can have no replica here"));
                }
                match *command {
                    "replica" => follow(&folder, name, &replica)?,
                    "lag" => Server::started(&folder, &replica)?.lag()?,
                    _ => Server::started(&folder, &replica)?.promote()?,
                }
            }
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(String::new())
}

fn everything() -> Vec<&'static str> {
    [&ALL[..], &REPLICAS, &[POOLER]].concat()
}

/// Starts servers at once. `under` are words before the command of postgres.
pub(crate) fn start(folder: &Path, names: &[&str], under: &[String]) -> Result<(), String> {
    install(names)?;
    let ports = free_ports(2 * names.len());
    let start = |name: &str, ports: &[u16]| {
        let mut server = Server::at(folder, name)?;
        server.start([ports[0], ports[1]], under).map_err(|error| {
            let _ = server.stop(); // the first error matters
            let (place, end) = (server.home.display(), server.end_of_log());
            format!("{name} did not start: {error}; the end of {place}/log:\n{end}")
        })
    };
    at_once(names.iter().zip(ports.chunks(2)), |(name, ports)| {
        start(name, ports)
    })
}

pub(crate) fn stop(folder: &Path, names: &[&str]) -> Result<(), String> {
    at_once(names, |name| Server::at(folder, name)?.stop())
}

/// Does this with all, each on a separate thread; returns the errors.
fn at_once<T: Send>(
    all: impl IntoIterator<Item = T>,
    act: impl Fn(T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let act = &act;
    let failed: Vec<String> = thread::scope(|scope| {
        let each = all.into_iter().map(|one| scope.spawn(move || act(one)));
        let threads: Vec<_> = each.collect();
        let ended = threads
            .into_iter()
            .map(|it| it.join().expect("it does not panic"));
        ended.filter_map(Result::err).collect()
    });
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("\n")),
    }
}

fn environment(folder: &Path) -> String {
    let lines = everything().into_iter().filter_map(|name| {
        let url = url(folder, name)?;
        Some(format!("export {}='{url}'\n", variable(name)))
    });
    let folder = folder.display().to_string().replace('\'', r"'\''");
    lines
        .chain([format!("export VESTA_TEST_STORES='{folder}'\n")])
        .collect()
}

/// The variable with the URL of a store.
pub(crate) fn variable(name: &str) -> String {
    format!("VESTA_TEST_{}", name.to_uppercase().replace('-', "_"))
}

/// The URL of a server that has been started.
pub(crate) fn url(folder: &Path, name: &str) -> Option<String> {
    tools::read(&folder.join(name).join("url")).ok()
}

/// Where a build puts vesta-server.
fn vesta_server() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let path = project.join(target).join("debug/vesta-server");
    path.canonicalize().unwrap_or(path)
}

fn lacks(name: &str) -> Option<String> {
    Kind::of(name)?.lacks()
}

fn install(names: &[&str]) -> Result<(), String> {
    let missing = names.iter().filter(|name| lacks(name).is_some());
    let kinds = missing.filter_map(|name| Kind::of(name));
    let packages: Vec<_> = kinds.flat_map(|it| it.programs().1).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../install.sh");
    output(command([script]).args(packages), "").map(drop)
}

// ---- replicas ----

/// Starts a server that follows another one as long as its folder names that one.
fn follow(folder: &Path, name: &str, replica: &str) -> Result<(), String> {
    Server::at(folder, name)?.running()?;
    new_replica(folder, name, replica)?;
    write(&folder.join(replica).join("source"), &format!("{name}\n"))?;
    start(folder, &[replica], &[])?;
    let replica = Server::started(folder, replica)?;
    if replica.kind == Kind::Mysql {
        replica.follow_mysql()?;
    }
    replica.catch_up()
}

fn subscriber(folder: &Path) -> Result<(), String> {
    let (name, replica) = ("postgres", "postgres-replica");
    let source = Server::started(folder, name)?.port;
    new_replica(folder, name, replica)?;
    start(folder, &[replica], &[])?;
    Server::started(folder, replica)?.subscribe(source)
}

/// A folder with the password of a server for its replica.
fn new_replica(folder: &Path, name: &str, replica: &str) -> Result<(), String> {
    if Server::at(folder, replica)?.was_ready() {
        return Err(format!("{replica} is there already"));
    }
    let home = folder.join(replica);
    create_folder(&home)?;
    write(&home.join("password"), &Server::at(folder, name)?.password)
}
