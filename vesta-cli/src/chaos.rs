//! `chaos`: real servers on loopback that are killed, paused and given wrong clocks, while every ID that
//! they make is compared with all others.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Write as _, stdin};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The pause between two looks at something that is waited for.
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

/// One place for a server: the one that is there now, how wrong its clock is, and until when it is paused.
#[derive(Debug)]
struct Place {
    child: Child,
    off: i64,
    paused: Option<Duration>,
}

impl Place {
    /// Sends a signal to a process that has not been waited for: its number is not another one's yet.
    fn signal(&self, signal: Signal) -> bool {
        kill_process(Pid::from_child(&self.child), signal).is_ok()
    }

    fn step_clock(&mut self, off: i64) -> bool {
        self.off = off;
        self.child.stdin.as_mut().is_some_and(|input| writeln!(input, "{off}").is_ok())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
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
    namespace: String,
    /// So few machine IDs that they come again soon; a store of others has them back after minutes only.
    few: bool,
    processes: u16,
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
        processes: args.processes,
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
        let ask = |number| threads.spawn(move || chaos.ask(number));
        let asking: Vec<_> = (0..args.processes).map(ask).collect();
        let counts = chaos.disturb(&mut Dice(seed));
        chaos.over.store(true, Relaxed);
        let asked = asking.into_iter().map(|asking| {
            asking.join().unwrap_or_else(|_| Err(Error::software("a caller", "it panicked")))
        });
        (counts, asked.collect::<Result<Vec<_>, _>>())
    });
    let ([kills, pauses, steps], ids) = (counts?, chaos.ids.load(Relaxed));
    let repeated: Vec<_> = asked?.into_iter().flatten().collect();
    for id in &repeated {
        let fields = IdMeta::MAX_PEAK.unpack(*id).map_err(Error::setting)?;
        say(&format!("{id} came twice: {fields:?}"));
    }
    let (count, all) = (repeated.len() as u64, grouped(ids));
    let text =
        format!("{count} of {all} repeated; {kills} kills, {pauses} pauses, {steps} clock steps\n");
    let names = ["repeated", "ids", "kills", "pauses", "clockSteps", "seed"];
    record(output, text, names, [count, ids, kills, pauses, steps, seed])?;
    Ok(if repeated.is_empty() { Answer::Yes } else { Answer::No })
}

impl Chaos {
    /// Keeps a server in each place, and kills them, pauses them and steps their clocks, as the dice fall,
    /// until it is over or an ID came twice. Returns how many kills, pauses and steps there were.
    fn disturb(&self, dice: &mut Dice) -> Result<[u64; 3], Error> {
        let start = |number| Ok(Place { child: self.start(number, 0)?, off: 0, paused: None });
        let mut places = (0..self.processes).map(start).collect::<Result<Vec<_>, Error>>()?;
        let mut counts = [0; 3];
        let (mut next, mut said) = (Duration::from_secs(1), Duration::from_secs(2));
        loop {
            let now = CLOCK.monotonic() - self.began;
            if now >= self.length || self.over.load(Relaxed) {
                return Ok(counts);
            }
            for (number, place) in (0..).zip(&mut places) {
                if self.has_ended(number, &mut place.child)? {
                    place.child = self.start(number, place.off)?;
                    place.paused = None;
                }
                if place.paused.is_some_and(|until| now >= until) {
                    place.signal(Signal::CONT);
                    place.paused = None;
                }
            }
            if now >= next {
                next = now + Duration::from_millis(300 + dice.below(1200));
                let number = dice.below(u64::from(self.processes)) as usize;
                let place = &mut places[number];
                let (kind, how_long, off) =
                    (dice.below(100), dice.below(7000), dice.below(2 * WRONG));
                let (kind, done) = match kind {
                    0..65 => (0, place.signal(Signal::KILL)),
                    65..90 if place.paused.is_none() => {
                        place.paused = Some(now + Duration::from_millis(200 + how_long));
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

    /// Asks the servers of a place for IDs, one after the other. Returns one that came twice.
    fn ask(&self, number: u16) -> Result<Option<u64>, Error> {
        let share = || (CLOCK.monotonic() - self.began).div_duration_f64(self.length);
        while !self.over.load(Relaxed) {
            CLOCK.park(TURN); // it starts, or says that it cannot
            let Some(url) = self.url(number) else { continue };
            let http = Http::new(&url, &Access { token: None, ca: None })?;
            while !self.over.load(Relaxed)
                && let Ok(ids) = http.ids(BATCH)
            {
                self.ids.fetch_add(ids.len() as u64, Relaxed);
                let twice = self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(ids);
                if twice.is_some() {
                    self.over.store(true, Relaxed);
                    return Ok(twice);
                }
                while self.ids.load(Relaxed) as f64 > MOST * share() {
                    CLOCK.park(TURN);
                }
            }
        }
        Ok(None)
    }

    /// The file for a kind of output of a server: nobody has to read along, and the last one's are there.
    fn file(&self, number: u16, kind: &str) -> PathBuf {
        self.folder.join(format!("{number}.{kind}"))
    }

    /// The URL of the server of a place, once it listens.
    fn url(&self, number: u16) -> Option<String> {
        let said = std::fs::read_to_string(self.file(number, "out")).ok()?;
        let address = said.lines().find_map(|line| line.trim().strip_prefix("HTTP"))?;
        Some(format!("http://{}", address.trim()))
    }

    fn start(&self, number: u16, off: i64) -> Result<Child, Error> {
        let failed = |error| Error::software("cannot start a server", error);
        let file = |kind| File::create(self.file(number, kind)).map_err(failed);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args([MEMBER, &off.to_string()]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "off", "--log-level", "error"]);
        command.args(["--namespace", &self.namespace, "--machine-store", &self.store]);
        if self.few {
            command.args(["--machine-range", &format!("0-{}", 2 * self.processes - 1)]);
        }
        command.arg("--state-dir").arg(self.folder.join("state"));
        // Settings of servers that are not these.
        let is_setting = |name: &OsString| name.as_encoded_bytes().starts_with(b"VESTA_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
            command.env_remove(name);
        }
        command.stdin(Stdio::piped()).stdout(file("out")?).stderr(file("log")?);
        command.spawn().map_err(failed)
    }

    /// True if a server was killed, or refused for now.
    fn has_ended(&self, number: u16, child: &mut Child) -> Result<bool, Error> {
        let failed = |error| Error::software("cannot look after a server", error);
        let Some(status) = child.try_wait().map_err(failed)? else { return Ok(false) };
        let said = std::fs::read_to_string(self.file(number, "log")).map_err(failed)?;
        match status.code().filter(|_| self.url(number).is_none()) {
            Some(64) => Error::refuse(format!("a server does not start: {}", said.trim())),
            Some(70) => Err(Error::software("a server", said.trim())),
            _ => Ok(true),
        }
    }
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
