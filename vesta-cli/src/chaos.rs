//! `chaos`: real servers on loopback that are killed, paused, given wrong clocks and cut off from their store or
//! pool server. Each ID that they make is compared with all others.

mod seen;
mod way;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _, stdin};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio, exit, id};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{scope, spawn};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use vesta_boot::{CancellationToken, Error, Invocation};
use vesta_intf::{Field, IdMeta, UnixMillis};
use vesta_service::clock::{Clock, SystemClock};
use vesta_store::StoreUrl;

use seen::{Dice, Origin, Seen};
use way::Way;

use crate::cli::{Access, ChaosArgs};
use crate::http::Http;
use crate::output::{Cell, Output, grouped, record, say};
use crate::{Answer, Done, FRONTS, NAME};

/// Internal command that runs one of these servers; not for users.
pub(crate) const MEMBER: &str = "chaos-member";

/// Polling interval of every wait.
const TURN: Duration = Duration::from_millis(20);

const CLOCK: SystemClock = SystemClock::new();

/// Lowest bits of an ID: the machine ID, in the layout of the servers.
const MACHINE: u32 = IdMeta::MAX_PEAK.bits(Field::Machine) as u32;

/// The error of this process's clock in milliseconds.
static OFF: AtomicI64 = AtomicI64::new(0);

#[derive(Debug)]
struct Stepped;

impl Clock for Stepped {
    fn wall(&self) -> UnixMillis {
        UnixMillis(CLOCK.wall().0.saturating_add_signed(OFF.load(Relaxed)))
    }

    fn monotonic(&self) -> Duration {
        CLOCK.monotonic()
    }

    fn park(&self, duration: Duration) {
        CLOCK.park(duration);
    }
}

/// Second argument of a server that is a pool server.
const POOL_SERVER: &str = "pool_server";

/// Runs a server whose clock is off by the first argument, then by each line of standard input. It ends
/// with its parent process.
pub(crate) fn member(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(off) = args.next().and_then(|off| off.to_str()?.parse().ok()) else {
        return ExitCode::from(64);
    };
    OFF.store(off, Relaxed);
    end_with_parent();
    spawn(|| {
        for off in stdin().lines().map_while(|line| line.ok()?.parse().ok()) {
            OFF.store(off, Relaxed);
        }
        exit(70); // the parent had gone before the kernel knew of it
    });
    println!("  process     {}", id());
    let clock: Arc<dyn Clock> = Arc::new(Stepped);
    let front = match args.next() {
        Some(kind) if kind == POOL_SERVER => FRONTS[1],
        _ => FRONTS[0],
    };
    let done = Invocation::read(NAME, &[front.api], args)
        .and_then(|it| vesta_boot::start(Some(clock), NAME, &[front], it));
    done.map_or_else(|error| error.report(NAME), |()| ExitCode::SUCCESS)
}

/// Makes a server end with `vesta chaos`, even while it is paused.
#[cfg(target_os = "linux")]
fn end_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// On other systems a server ends when its standard input does; a paused one, once it resumes.
#[cfg(not(target_os = "linux"))]
const fn end_with_parent() {}

/// A slot for a server: its current process, the error of its clock, and the ends of its pause and its cut.
struct Place {
    child: Child,
    off: i64,
    paused: Option<Duration>,
    cut: Option<Duration>,
}

impl Place {
    /// The process has not been waited for, so its process ID is not reused yet.
    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// If the process has just been killed, its successor starts with this step.
    fn step_clock(&mut self, off: i64) {
        self.off = off;
        let _ = self
            .child
            .stdin
            .as_mut()
            .map(|input| writeln!(input, "{off}"));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

struct Chaos<'a> {
    args: &'a ChaosArgs,
    folder: &'a Path,
    /// Address of the pool server, if there is one.
    pool_server: Option<SocketAddr>,
    /// URL of the store, if one is given.
    store: Option<StoreUrl>,
    /// The way of each server to the pool server, or to the one server of the store.
    ways: Vec<Way>,
    over: CancellationToken,
}

pub(crate) fn run(args: &ChaosArgs, output: Output) -> Done {
    let told = vesta_boot::on_signal()?; // before anything needs tidying up
    let folder = tempfile::Builder::new()
        .prefix("vesta-chaos-")
        .tempdir()
        .map_err(failed)?;
    let seed = args.seed.unwrap_or(CLOCK.random() as u64 % 1_000_000);
    let pool_server = args.pool_server.then(free_address).transpose();
    let pool_server = pool_server.map_err(failed)?;
    // A malformed URL is the servers' to refuse.
    let store: Option<StoreUrl> = args.store.as_ref().and_then(|url| url.parse().ok());
    let named = store.as_ref().and_then(StoreUrl::one_server);
    let named = named.and_then(|at| at.to_socket_addrs().ok()?.next());
    let server = pool_server.or(named);
    let ways = (0..args.processes).filter_map(|_| Some(Way::to(server?)));
    let chaos = Chaos {
        args,
        folder: folder.path(),
        ways: ways.collect::<io::Result<_>>().map_err(failed)?,
        pool_server,
        store,
        over: told.child_token(),
    };
    let ChaosArgs {
        processes, minutes, ..
    } = args;
    let namespace = chaos.namespace().display();
    say(&format!(
        "{processes} servers for {minutes} min, --seed {seed}, namespace {namespace}"
    ));
    let (seen, [kills, pauses, steps, cuts, failed]) = chaos.disturb(&mut Dice(seed))?;
    let Seen { ids, repeated, .. } = seen;
    if let Some((id, origins)) = seen.twice {
        let machine = id % (1 << MACHINE);
        for (process, received) in origins {
            say(&format!(
                "{id}  process {process}  received {received}  machine {machine}"
            ));
        }
    }
    let cut_off = match cuts {
        0 => String::new(),
        _ => format!(", {cuts} cut off"),
    };
    let text = format!(
        "{repeated} of {} repeated; {kills} kills, {pauses} pauses, {steps} clock steps{cut_off}\n",
        grouped(ids)
    );
    let names = [
        "repeated",
        "ids",
        "kills",
        "pauses",
        "clock steps",
        "cuts",
        "failed requests",
        "seed",
    ];
    record(
        output,
        text,
        names,
        [repeated, ids, kills, pauses, steps, cuts, failed, seed].map(Cell::from),
    )?;
    match repeated {
        0 if told.is_cancelled() => Err(Error::software("chaos", "stopped by a signal")),
        0 => Ok(Answer::Yes),
        _ => Ok(Answer::No),
    }
}

/// An address of loopback that was free a moment ago.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn failed(error: io::Error) -> Error {
    Error::software("cannot watch the servers", error)
}

impl Chaos<'_> {
    /// The name of the folder, unique to this run.
    fn namespace(&self) -> &OsStr {
        self.folder.file_name().unwrap_or_default()
    }

    /// Keeps a server in each slot, and kills them, pauses them and steps their clocks at random, until
    /// the time is up, an ID repeats, or a stop is requested. Returns the IDs, and the counts of kills,
    /// pauses, clock steps, cuts from the store or pool server, and failed requests.
    fn disturb(&self, dice: &mut Dice) -> Result<(Seen, [u64; 5]), Error> {
        let ChaosArgs {
            processes, minutes, ..
        } = *self.args;
        let (mut began, mut seen, mut counts) = (CLOCK.monotonic(), Seen::default(), [0; 5]);
        let (mut next, mut said) = (Duration::from_secs(1), Duration::from_secs(2));
        // At the end the servers stop first, then the receiver, and with them the threads that wait
        // for either.
        let all = processes + u16::from(self.pool_server.is_some());
        scope(|threads| {
            let _over = self.over.drop_guard_ref();
            let (send, received) = sync_channel(64);
            let mut places = Vec::new();
            for number in 0..all {
                places.push(Place {
                    child: self.start(number, 0)?,
                    off: 0,
                    paused: None,
                    cut: None,
                });
                let send = send.clone();
                if number < processes {
                    threads.spawn(move || self.ask(number, &send));
                }
            }
            loop {
                match received.recv_timeout(TURN) {
                    Ok(Some((ids, origin))) => seen.add(ids, origin),
                    Ok(None) => counts[4] += 1,
                    Err(_) => {}
                }
                if seen.ids == 0 {
                    began = CLOCK.monotonic(); // undisturbed, they can report that a store does not answer
                }
                let now = CLOCK.monotonic() - began;
                let is_over = now.as_secs_f64() >= minutes * 60.0 || self.over.is_cancelled();
                if is_over || seen.repeated > 0 {
                    return Ok((seen, counts));
                }
                for (number, place) in (0..).zip(&mut places) {
                    if let Some(status) = place.child.try_wait().map_err(failed)? {
                        if seen.ids == 0 {
                            return Err(self.not_started(number, status));
                        }
                        place.child = self.start(number, place.off)?;
                    }
                    if place.paused.take_if(|until| now >= *until).is_some() {
                        place.signal(Signal::CONT);
                    }
                    if place.cut.take_if(|until| now >= *until).is_some() {
                        self.ways[usize::from(number)].cut(false);
                    }
                }
                if now >= next {
                    // Draws equally often whatever the servers do: a seed always gives the same
                    // faults.
                    next += Duration::from_millis(300 + dice.below(1200));
                    let number = dice.below(all.into()) as usize;
                    let place = &mut places[number];
                    let (kind, pause) = (dice.below(100), dice.below(7000));
                    let off = dice.below(8001).cast_signed() - 4000;
                    let kind = match (kind, self.ways.get(number)) {
                        (0..65, _) => 0,
                        (65..85, _) => 1,
                        (85..93, _) | (_, None) => 2,
                        (_, Some(way)) => {
                            way.cut(true);
                            place.cut = Some(now + Duration::from_millis(1000 + 4 * pause));
                            3
                        }
                    };
                    counts[kind] += 1;
                    match kind {
                        0 => place.signal(Signal::KILL),
                        1 => {
                            place.signal(Signal::STOP);
                            place.paused = Some(now + Duration::from_millis(200 + pause));
                        }
                        2 => place.step_clock(off),
                        _ => {}
                    }
                }
                if now >= said {
                    said += Duration::from_secs(2);
                    let ids = grouped(seen.ids);
                    say(&format!(
                        "{:3} s  {ids} IDs, {} kills",
                        now.as_secs(),
                        counts[0]
                    ));
                }
            }
        })
    }

    /// Requests IDs from the server of a slot, one call after another. Failed requests are skipped.
    fn ask(&self, number: u16, send: &SyncSender<Option<(Vec<u64>, Origin)>>) {
        while !self.over.is_cancelled() {
            CLOCK.park(TURN); // it is starting, or reports that it cannot
            let Some((http, process)) = self.listens(number) else {
                continue;
            };
            // Maximum that REST returns per call. Once the run is over, the receiver is gone.
            while let Ok(ids) = http.ids(1000) {
                let received = UnixMillis(CLOCK.wall_seconds() * 1000);
                if send.send(Some((ids, (process, received)))).is_err() {
                    return;
                }
            }
            let _ = send.send(None);
        }
    }

    /// File for one kind of a server's output: a file needs no reader, and keeps the output of the last
    /// server.
    fn file(&self, number: u16, kind: &str) -> PathBuf {
        self.folder.join(format!("{number}.{kind}"))
    }

    /// The server of a slot, once it listens, and its process ID.
    fn listens(&self, number: u16) -> Option<(Http, u32)> {
        let said = std::fs::read_to_string(self.file(number, "out")).ok()?;
        let of = |label| {
            said.lines()
                .find_map(|line| line.trim().strip_prefix(label))
                .map(str::trim)
        };
        let http = Http::new(
            &format!("http://{}", of("HTTP")?).parse().ok()?,
            &Access {
                token: None,
                ca: None,
            },
        );
        Some((http.ok()?, of("process")?.parse().ok()?))
    }

    fn start(&self, number: u16, off: i64) -> Result<Child, Error> {
        let file = |kind| File::create(self.file(number, kind)).map_err(failed);
        let serves = self.pool_server.filter(|_| number == self.args.processes);
        let (kind, flag, listen) = match serves {
            Some(address) => (POOL_SERVER, "--grpc-listen", address.to_string()),
            None => ("member", "--http-listen", "127.0.0.1:0".to_owned()),
        };
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command
            .args([MEMBER, &off.to_string(), kind, "--namespace"])
            .arg(self.namespace());
        command.args([flag, &listen, "--admin-listen", "off"]);
        command.args(["--log-level", "error"]);
        command
            .arg("--state-dir")
            .arg(self.folder.join("state"))
            .arg("--machine-store");
        let file_store = format!("sqlite:{}", self.folder.join("pool.db").display());
        match (&self.args.store, self.pool_server) {
            (Some(store), _) => {
                let way = self.ways.get(usize::from(number));
                let by_way = self.store.as_ref().zip(way);
                let by_way = by_way.and_then(|(url, way)| url.by_way_of(way.address));
                command.arg(by_way.as_ref().map_or(&**store, StoreUrl::expose))
            }
            (None, Some(_)) if serves.is_some() => command
                .args([&file_store, "--pool-server-namespaces"])
                .arg(self.namespace()),
            (None, Some(_)) => {
                let way = self.ways[usize::from(number)].address;
                command.arg(format!("vesta://{way}"))
            }
            // A small pool, so that machine IDs are soon reused; other stores take minutes to free those
            // of dead processes.
            (None, None) => command.arg(file_store).args([
                "--machine-range",
                &format!("0-{}", 2 * self.args.processes - 1),
            ]),
        };
        // Drops settings meant for other servers.
        let is_setting = |name: &OsString| name.as_encoded_bytes().starts_with(b"VESTA_");
        let names = std::env::vars_os()
            .map(|variable| variable.0)
            .filter(is_setting);
        names.for_each(|name| _ = command.env_remove(name));
        command
            .stdin(Stdio::piped())
            .stdout(file("out")?)
            .stderr(file("log")?);
        command.spawn().map_err(failed)
    }

    /// Reason why a server ended before its first ID, without a fault applied to it.
    fn not_started(&self, number: u16, status: ExitStatus) -> Error {
        let log = std::fs::read_to_string(self.file(number, "log"));
        let log = log.unwrap_or_else(|error| error.to_string());
        let said = format!("a server does not start ({status}): {}", log.trim());
        match status.code() {
            Some(code @ (64 | 69)) => Error::lasting(code == 64, said),
            _ => Error::Software(said),
        }
    }
}
