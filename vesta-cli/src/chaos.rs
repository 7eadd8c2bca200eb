//! `chaos`: real servers on loopback that are killed, paused and given wrong clocks, while every ID that
//! they make is compared with all others.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _, stdin};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{scope, spawn};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use vesta_boot::{Error, Role};
use vesta_intf::{IdMeta, UnixMillis};
use vesta_service::{Clock, SystemClock};

use crate::cli::{Access, ChaosArgs};
use crate::http::Http;
use crate::output::{Output, grouped, record, say};
use crate::{Answer, Done, FRONTS};

/// The command of a server of these; not one for people.
pub(crate) const MEMBER: &str = "chaos-member";

/// What waits looks again after this time.
const TURN: Duration = Duration::from_millis(20);

/// IDs of one request: the most that REST gives.
const BATCH: usize = 1000;

/// All that it compares, at 8 bytes each; a long run asks more slowly.
const MOST: f64 = 400e6;

/// Clocks are at most so wrong, in milliseconds.
const WRONG: u64 = 4000;

const CLOCK: SystemClock = SystemClock::new();

/// The machine's clock, some milliseconds off.
#[derive(Debug, Default)]
struct Stepped(AtomicI64);

impl Clock for Stepped {
    fn wall(&self) -> UnixMillis {
        UnixMillis(CLOCK.wall().0.saturating_add_signed(self.0.load(Relaxed)))
    }

    fn monotonic(&self) -> Duration {
        CLOCK.monotonic()
    }

    fn park(&self, duration: Duration) {
        CLOCK.park(duration);
    }
}

/// A server whose clock is off by the first argument, and then by each line of standard input. It ends with
/// whoever started it.
pub(crate) fn member(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let clock = Arc::new(Stepped::default());
    let off = args.next().and_then(|off| off.to_str()?.parse().ok());
    let (Some(off), Ok(())) = (off, set_parent_process_death_signal(Some(Signal::KILL))) else {
        return ExitCode::from(64);
    };
    clock.0.store(off, Relaxed);
    let stepped = Arc::clone(&clock);
    spawn(move || {
        for off in stdin().lines().map_while(|line| line.ok()?.parse().ok()) {
            stepped.0.store(off, Relaxed);
        }
    });
    vesta_boot::main_by(Some(clock), Role::Rest, &FRONTS[..1], args)
}

/// One place for a process: the one that is there now, and how wrong its clock is.
#[derive(Debug, Default)]
struct Place {
    child: Mutex<Option<Child>>,
    off: AtomicI64,
}

impl Place {
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to the process, if it is one that has not been waited for.
    fn signal(&self, signal: Signal) -> bool {
        let child = self.child();
        let pid = child.as_ref().and_then(|child| Pid::from_raw(child.id().cast_signed()));
        pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Kills the process, and waits until it is gone.
    fn end(&self) {
        if let Some(child) = &mut *self.child() {
            let _ = child.kill().and_then(|()| child.wait()); // it may be gone
        }
    }

    fn step_clock(&self, off: i64) -> bool {
        self.off.store(off, Relaxed);
        let mut child = self.child();
        let input = child.as_mut().and_then(|child| child.stdin.as_mut());
        input.is_some_and(|input| writeln!(input, "{off}").is_ok())
    }
}

/// All IDs so far, in sorted runs: 8 bytes each.
#[derive(Debug, Default)]
struct Seen(Vec<Vec<u64>>);

impl Seen {
    /// Adds IDs, and returns one that was there already.
    fn add(&mut self, mut ids: Vec<u64>) -> Option<u64> {
        ids.sort_unstable();
        let twice = ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let among = |run: &&Vec<u64>| {
            // Most runs are of other times.
            let from = run.partition_point(|id| *id < ids[0]);
            let run = &run[from..];
            ids.iter().copied().find(|id| run.binary_search(id).is_ok())
        };
        let known = self.0.iter().filter(|_| !ids.is_empty()).find_map(|run| among(&run));
        self.0.push(ids);
        while let [.., longer, last] = &mut self.0[..]
            && longer.len() < 2 * last.len()
        {
            // Two sorted runs: the sort recognises them.
            longer.append(last);
            longer.sort();
            self.0.pop();
        }
        twice.or(known)
    }
}

/// Random numbers that a seed decides (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}

#[derive(Debug)]
struct Chaos {
    folder: PathBuf,
    store: String,
    /// So few machine IDs that they come again soon; a store of others has them back after minutes only.
    few: bool,
    namespace: String,
    places: Vec<Place>,
    seen: Mutex<Seen>,
    /// IDs that were compared.
    ids: AtomicU64,
    began: Duration,
    length: Duration,
    over: AtomicBool,
}

pub(crate) fn run(args: &ChaosArgs, output: Output) -> Done {
    let failed = |error| Error::software("cannot make a folder for the servers", error);
    let folder = tempfile::Builder::new().prefix("vesta-chaos.").tempdir().map_err(failed)?;
    let random = CLOCK.random() as u64;
    let seed = args.seed.unwrap_or(random % 1_000_000);
    let pool = || format!("sqlite:{}", folder.path().join("pool.db").display());
    let chaos = Chaos {
        store: args.store.clone().unwrap_or_else(pool),
        few: args.store.is_none(),
        folder: folder.path().to_owned(),
        namespace: format!("chaos-{random:016x}"),
        places: (0..args.processes).map(|_| Place::default()).collect(),
        seen: Mutex::default(),
        ids: AtomicU64::new(0),
        began: CLOCK.monotonic(),
        length: Duration::from_secs_f64(args.minutes * 60.0),
        over: AtomicBool::new(false),
    };
    say(&format!("{} servers for {} min, --seed {seed}", args.processes, args.minutes));
    if args.store.is_some() {
        say(&format!("the store keeps the records of the namespace {}", chaos.namespace));
    }
    let (counts, asked) = scope(|threads| {
        let chaos = &chaos;
        let failed = |_: &Error| chaos.over.store(true, Relaxed);
        let ask = |place| threads.spawn(move || chaos.ask(place).inspect_err(failed));
        let asking: Vec<_> = (0..chaos.places.len()).map(ask).collect();
        let counts = chaos.disturb(&mut Dice(seed));
        chaos.over.store(true, Relaxed);
        chaos.places.iter().for_each(Place::end);
        let asked = asking.into_iter().map(|asking| {
            asking.join().unwrap_or_else(|_| Err(Error::software("a caller", "it panicked")))
        });
        (counts, asked.collect::<Result<Vec<_>, _>>())
    });
    let repeated: Vec<_> = asked?.into_iter().flatten().collect();
    for id in &repeated {
        let fields = IdMeta::MAX_PEAK.unpack(*id).map_err(Error::setting)?;
        say(&format!("{id} came twice: {fields:?}"));
    }
    let ids = chaos.ids.load(Relaxed);
    let [kills, pauses, steps] = counts;
    let text = format!(
        "{} of {} repeated; {kills} kills, {pauses} pauses, {steps} clock steps\n",
        repeated.len(),
        grouped(ids)
    );
    let names = ["repeated", "ids", "kills", "pauses", "clockSteps", "seed"];
    let mut counts = [repeated.len() as u64, ids, kills, pauses, steps, seed].into_iter();
    record(output, text, names.map(|name| (name, counts.next().unwrap_or(0).to_string())))?;
    Ok(if repeated.is_empty() { Answer::Yes } else { Answer::No })
}

impl Chaos {
    /// Kills, pauses and clock steps, as the dice fall, until it is over or an ID came twice. Returns how
    /// many there were of each.
    fn disturb(&self, dice: &mut Dice) -> [u64; 3] {
        let mut counts = [0; 3];
        let (mut next, mut said) = (Duration::from_secs(1), Duration::from_secs(2));
        let mut paused: Vec<Option<Duration>> = vec![None; self.places.len()];
        loop {
            let now = CLOCK.monotonic() - self.began;
            if now >= self.length || self.over.load(Relaxed) {
                return counts;
            }
            for (place, until) in self.places.iter().zip(&mut paused) {
                if until.is_some_and(|until| now >= until) {
                    place.signal(Signal::CONT);
                    *until = None;
                }
            }
            if now >= next {
                next = now + Duration::from_millis(300 + dice.below(1200));
                let number = dice.below(self.places.len() as u64) as usize;
                let (place, until) = (&self.places[number], &mut paused[number]);
                let (kind, how_long, off) =
                    (dice.below(100), dice.below(7000), dice.below(2 * WRONG));
                let (kind, done) = match kind {
                    0..65 => {
                        *until = None;
                        (0, place.signal(Signal::KILL))
                    }
                    65..90 if until.is_none() => {
                        *until = Some(now + Duration::from_millis(200 + how_long));
                        (1, place.signal(Signal::STOP))
                    }
                    _ => (2, place.step_clock(off.cast_signed() - WRONG.cast_signed())),
                };
                counts[kind] += u64::from(done);
            }
            if now >= said {
                said += Duration::from_secs(2);
                let ids = grouped(self.ids.load(Relaxed));
                say(&format!("{:3} s  {ids} IDs, {} kills", now.as_secs(), counts[0]));
            }
            CLOCK.park(TURN);
        }
    }

    /// Keeps a server running in a place, and asks it for IDs. Returns one that came twice.
    fn ask(&self, number: usize) -> Result<Option<u64>, Error> {
        let place = &self.places[number];
        while !self.over.load(Relaxed) {
            let Some(url) = self.start(number)? else { continue };
            let http = Http::new(&url, &Access { token: None, ca: None })?;
            loop {
                let share =
                    (CLOCK.monotonic() - self.began).as_secs_f64() / self.length.as_secs_f64();
                if self.ids.load(Relaxed) as f64 > MOST * share {
                    CLOCK.park(TURN);
                    continue;
                }
                let Ok(ids) = http.ids(BATCH) else {
                    let mut child = place.child();
                    let ended = child.as_mut().is_none_or(|it| !matches!(it.try_wait(), Ok(None)));
                    if ended || self.over.load(Relaxed) {
                        break;
                    }
                    drop(child);
                    CLOCK.park(TURN); // it says that it cannot
                    continue;
                };
                self.ids.fetch_add(ids.len() as u64, Relaxed);
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(id) = seen.add(ids) {
                    self.over.store(true, Relaxed);
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }

    /// Starts a server, and returns where it listens; `None` if it was killed, or refused for now.
    fn start(&self, number: usize) -> Result<Option<String>, Error> {
        let place = &self.places[number];
        let failed = |error| Error::software("cannot start a server", error);
        let words = self.folder.join(format!("{number}.log"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args([MEMBER, &place.off.load(Relaxed).to_string()]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "off", "--log-level", "error"]);
        command.args(["--namespace", &self.namespace, "--machine-store", &self.store]);
        if self.few {
            command.args(["--machine-range", &format!("0-{}", 2 * self.places.len() - 1)]);
        }
        command.arg("--state-dir").arg(self.folder.join("state"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.stderr(File::create(&words).map_err(failed)?).spawn().map_err(failed)?;
        let said = child.stdout.take();
        *place.child() = Some(child);
        if self.over.load(Relaxed) {
            place.signal(Signal::KILL);
        }
        let lines = said.into_iter().flat_map(|said| BufReader::new(said).lines());
        let mut lines = lines.map_while(Result::ok);
        let address =
            lines.find_map(|line| Some(line.trim().strip_prefix("HTTP")?.trim().to_owned()));
        if let Some(address) = address {
            spawn(move || lines.for_each(drop)); // what it says later has a reader too
            return Ok(Some(format!("http://{address}")));
        }
        let mut child = place.child();
        let status = child.as_mut().map(Child::wait).transpose().map_err(failed)?;
        match status.and_then(|status| status.code()) {
            Some(64) => Error::refuse(format!("a server does not start: {}", said_in(&words))),
            Some(70) => Err(Error::software("a server", said_in(&words))),
            _ => Ok(None),
        }
    }
}

/// Settings of servers that are not these.
fn is_setting(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("VESTA_"))
}

fn said_in(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_comes_twice_is_found_wherever_the_first_is() {
        let mut dice = Dice(1);
        for planted in [0, 1, 999, 1000, 12_345, 19_999] {
            let mut seen = Seen::default();
            for start in (0..20_000).step_by(1000) {
                let ids: Vec<_> = (start..start + 1000).rev().collect();
                assert_eq!(seen.add(ids), None);
            }
            let runs: Vec<_> = seen.0.iter().map(Vec::len).collect();
            assert!(runs.len() < 8 && runs.iter().sum::<usize>() == 20_000, "{runs:?}");
            let mut ids: Vec<_> = (0..999).map(|_| 20_000 + dice.below(1 << 60)).collect();
            assert_eq!(seen.add(ids.clone()), None);
            assert_eq!(seen.add(vec![]), None);
            ids.iter_mut().for_each(|id| *id += 1 << 61);
            ids.push(planted);
            assert_eq!(seen.add(ids), Some(planted));
        }
        assert_eq!(Seen::default().add(vec![7, 8, 7]), Some(7));
    }

    #[test]
    fn the_same_seed_throws_the_same() {
        let throw = |seed| {
            let mut dice = Dice(seed);
            [(); 5].map(|()| dice.below(100))
        };
        assert_eq!(throw(7), throw(7));
        assert_ne!(throw(7), throw(8));
    }
}
