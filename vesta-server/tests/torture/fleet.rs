//! All processes, and the faults applied to them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use vesta_service::lease::{Cas, Record};
use vesta_testkit::{Rng, WallClock};

use crate::callers::Api;
use crate::plan::{Kind, Slot};
use crate::process::{Process, program};
use crate::watch::Watch;
use crate::world::{NOBODY, World};

/// Processes that run at once in each world, not counting twins.
pub(crate) const SLOTS: usize = 2;

/// Long enough for every holder to renew.
const RENEWED: Duration = Duration::from_millis(2000);

/// A host with a clock and a state directory.
struct Host {
    clock: WallClock,
    state: PathBuf,
    process: Option<Arc<Process>>,
    twin: Option<Arc<Process>>,
    paused: bool,
}

impl Host {
    fn all(&self) -> impl Iterator<Item = &Arc<Process>> {
        self.process.iter().chain(&self.twin)
    }
}

pub(crate) struct Fleet {
    pub(crate) worlds: Vec<Arc<World>>,
    hosts: Vec<Host>,
    folder: PathBuf,
    watch: Arc<Watch>,
    runtime: Handle,
    rng: Rng,
    started: usize,
    /// All processes that ever ran.
    processes: Vec<Arc<Process>>,
}

impl Fleet {
    pub(crate) fn new(
        worlds: Vec<Arc<World>>,
        folder: &Path,
        watch: Arc<Watch>,
        runtime: Handle,
        rng: Rng,
    ) -> Self {
        // Another user reaches its folder below this one.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).expect("its owner");
        let host = |world: &Arc<World>, slot: usize| {
            let state = world.state(&slot.to_string());
            let clock = folder.join(world.name).join(format!("clock-{slot}"));
            for made in [&state, &clock] {
                fs::create_dir_all(made).expect("a folder");
            }
            if world.kind == Kind::Users && slot > 0 {
                chown(&state, Some(NOBODY), Some(NOBODY)).expect("as root");
            }
            Host {
                clock: WallClock::new(&clock),
                state,
                process: None,
                twin: None,
                paused: false,
            }
        };
        let hosts = worlds
            .iter()
            .flat_map(|world| (0..SLOTS).map(move |slot| host(world, slot)));
        let (hosts, folder) = (hosts.collect(), folder.to_owned());
        Self {
            worlds,
            hosts,
            folder,
            watch,
            runtime,
            rng,
            started: 0,
            processes: Vec::new(),
        }
    }

    fn host(&mut self, (world, slot): Slot) -> &mut Host {
        &mut self.hosts[world * SLOTS + slot]
    }

    fn launch(&mut self, slot: Slot, state: &Path, what: &str) -> Arc<Process> {
        let world = self.worlds[slot.0].clone();
        self.started += 1;
        let (program, api) = match self.rng.below(3) {
            0 => ("vesta-rest", Api::Rest),
            _ => ("vesta-server", Api::Grpc(self.runtime.clone())),
        };
        let name = format!(
            "{what} {} of {}: {program} #{}",
            slot.1, world.name, self.started
        );
        let mut command = world.command(
            &self::program(program),
            state,
            slot.1 as u64 + 1,
            &mut self.rng,
        );
        self.host(slot).clock.under(&mut command);
        let process = Process::start(&mut command, &name, &world, &self.watch, api);
        self.watch.say(&format!("started {}", process.name));
        self.processes.push(process.clone());
        process
    }

    pub(crate) fn start(&mut self, slot: Slot, keeps: bool, clock: &str) {
        let host = self.host(slot);
        if host
            .process
            .as_ref()
            .is_some_and(|process| !process.ends_within(Duration::ZERO))
        {
            return;
        }
        host.clock.step(clock);
        let state = host.state.clone();
        if !keeps {
            self.lose(slot);
        }
        let process = self.launch(slot, &state, "slot");
        self.host(slot).process = Some(process);
    }

    /// Starts a second process with a copy of the first one's current state.
    pub(crate) fn start_twin(&mut self, slot: Slot) {
        let mut state = self.host(slot).state.clone();
        let world = self.worlds[slot.0].clone();
        if let Kind::Network { .. } = world.kind {
            let copy = self.new_folder(slot);
            copy_folder(&state, &copy);
            world.count(|counts| &mut counts.folders);
            state = copy;
        }
        self.start_beside(slot, &state, "twin of slot");
    }

    /// Starts a second process without any state.
    pub(crate) fn start_newcomer(&mut self, slot: Slot) {
        let state = self.new_folder(slot);
        self.start_beside(slot, &state, "newcomer beside slot");
    }

    fn new_folder(&self, (world, _): Slot) -> PathBuf {
        self.folder
            .join(self.worlds[world].name)
            .join(format!("new-{}", self.started))
    }

    fn start_beside(&mut self, slot: Slot, state: &Path, what: &str) {
        let twin = self.launch(slot, state, what);
        if let Some(old) = self.host(slot).twin.replace(twin) {
            self.kill(slot.0, &old);
        }
    }

    pub(crate) fn end_twin(&mut self, slot: Slot) {
        if let Some(twin) = self.host(slot).twin.take() {
            self.kill(slot.0, &twin);
        }
    }

    fn kill(&self, world: usize, process: &Process) {
        if process.kill() {
            self.worlds[world].count(|counts| &mut counts.kills);
            self.watch.say(&format!("killed {}", process.name));
        }
    }

    pub(crate) fn kill_slot(&mut self, slot: Slot) {
        if let Some(process) = self.host(slot).process.take() {
            self.kill(slot.0, &process);
        }
    }

    pub(crate) fn kill_all(&mut self) {
        for (index, host) in self.hosts.iter().enumerate() {
            for process in host.all() {
                self.kill(index / SLOTS, process);
            }
        }
    }

    /// Applies `what` to the process of a slot; true if it was done.
    pub(crate) fn send(&mut self, slot: Slot, what: fn(&Process) -> bool) -> bool {
        self.host(slot).process.as_deref().is_some_and(what)
    }

    pub(crate) fn pause(&mut self, slot: Slot) -> bool {
        self.host(slot).paused = true;
        self.send(slot, Process::pause)
    }

    pub(crate) fn resume(&mut self, slot: Slot) {
        self.host(slot).paused = false;
        self.send(slot, Process::resume);
    }

    pub(crate) fn step(&mut self, slot: Slot, offset: &str) {
        self.host(slot).clock.step(offset);
        self.worlds[slot.0].count(|counts| &mut counts.steps);
    }

    pub(crate) fn step_all(&mut self, offset: &str) {
        for slot in (0..self.hosts.len()).map(|host| (host / SLOTS, host % SLOTS)) {
            if self.worlds[slot.0].kind != Kind::Users {
                self.step(slot, offset);
            }
        }
    }

    /// Rolls the records of a store back to moments ago, if only renewals lie in between: IDs claimed since
    /// could repeat until each owner has renewed once. Nothing else happens meanwhile, because a paused
    /// owner would not see it in time. True if it was done.
    pub(crate) fn set_back(&mut self, world: usize, watch: &Watch) -> bool {
        let paused = self.hosts[world * SLOTS..][..SLOTS]
            .iter()
            .any(|host| host.paused);
        let Some(leases) = self.worlds[world].leases().filter(|_| !paused) else {
            return false;
        };
        let Ok(before) = leases.snapshot() else {
            return false;
        };
        watch.over.within(RENEWED);
        let Ok(now) = leases.snapshot() else {
            return false;
        };
        let renewed = before.records.iter().filter(|(machine, old)| {
            now.records.get(machine).is_some_and(|new| {
                (new.epoch, new.owner, new.released) == (old.epoch, old.owner, false)
                    && new.bound > old.bound
            })
        });
        let put_back = |(machine, old): &(&u64, &Record)| {
            matches!(
                leases.change(**machine, now.records.get(machine), old),
                Ok(Cas::Done)
            )
        };
        let count = renewed.filter(put_back).count();
        watch.over.within(RENEWED);
        if count > 0 {
            self.worlds[world].count(|counts| &mut counts.set_back);
        }
        count > 0
    }

    /// Deletes a state directory, in use or not.
    pub(crate) fn lose(&mut self, slot: Slot) {
        let world = self.worlds[slot.0].clone();
        assert!(
            matches!(world.kind, Kind::Network { .. }),
            "it must be kept"
        );
        let state = self.host(slot).state.clone();
        // A process that uses it may create a file in the meantime: then only part of it is lost.
        let _ = fs::remove_dir_all(&state);
        world.count(|counts| &mut counts.folders);
    }

    /// Ends everything: everything that callers received up to then is checked.
    pub(crate) fn end(&mut self) {
        self.watch.over.set();
        for process in &self.processes {
            process.kill();
        }
        let panics = self
            .processes
            .iter()
            .filter(|process| !process.join())
            .count();
        assert!(
            panics == 0 || thread::panicking(),
            "{panics} threads panicked"
        );
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end();
    }
}

/// Copies the files present at the moment; files that vanish in the meantime are skipped.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let copy = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &copy);
        } else {
            let _ = fs::copy(entry.path(), copy);
        }
    }
}
