//! A namespace: its store, its settings, everything received of it, and its row of the table.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use vesta_intf::IdMeta;
use vesta_service::lease::Leases;
use vesta_testkit::fleet::Ledger;
use vesta_testkit::programs::FREE_PORTS;
use vesta_testkit::{Rng, namespace_of};

use crate::plan::Kind;

/// The other user of a host.
pub(crate) const NOBODY: u32 = 65_534;

/// Counts of the events in a world.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) starts: u64,
    /// Starts that ended before they were ready, without being killed.
    pub(crate) refused_starts: u64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    pub(crate) pauses: u64,
    pub(crate) steps: u64,
    /// State directorys lost or copied.
    pub(crate) folders: u64,
    pub(crate) outages: u64,
    /// Times that the store refused or rolled back.
    pub(crate) refusing: u64,
    pub(crate) set_back: u64,
    pub(crate) fail_overs: u64,
    /// Calls that got an error.
    pub(crate) refused_calls: u64,
    /// Those of them whose server had no window left.
    pub(crate) awaiting: u64,
}

pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    url: Option<String>,
    folder: PathBuf,
    namespace: String,
    layout: &'static str,
    settings: Vec<String>,
    ledger: Mutex<Ledger>,
    counts: Mutex<Counts>,
}

impl World {
    /// Settings differ from seed to seed.
    pub(crate) fn new(
        name: &'static str,
        kind: Kind,
        url: Option<String>,
        folder: &Path,
        rng: &mut Rng,
    ) -> Self {
        let (layout, meta) = rng.pick(&[
            ("max-peak", IdMeta::MAX_PEAK),
            ("min-granularity", IdMeta::MIN_GRANULARITY),
        ]);
        let mut settings = Vec::new();
        let mut set = |flag: &str, value: String| settings.extend([flag.to_owned(), value]);
        if !matches!(kind, Kind::Fixed | Kind::Users) {
            // Few machine IDs and short windows: they soon pass from one process to another.
            let renew = rng.within(700..=1500); // a window is two ticks at least
            set("--machine-renew-every-ms", renew.to_string());
            set("--machine-request-timeout-ms", (renew * 2 / 3).to_string());
            set("--machine-window-ms", (renew * 3).to_string());
            set("--machine-takeover-grace-ms", (renew * 9).to_string());
            set("--machine-range", format!("1-{}", rng.within(10..=20)));
            set(
                "--machine-strategy",
                rng.pick(&["lease", "lowest"]).to_owned(),
            );
        }
        let is_made_once = matches!(
            kind,
            Kind::Network {
                can_refuse: true,
                ..
            }
        );
        if is_made_once {
            // Otherwise a host with an empty state directory would recreate a table that is only renamed.
            settings.push("--auto-init=false".to_owned());
        }
        let ledger = Mutex::new(Ledger::new(meta));
        // A fixed machine ID, or one of a pool in a file, belongs to one process of a host.
        let namespace = format!("{}-{name}", namespace_of(folder));
        let (folder, counts) = (folder.join(name), Mutex::default());
        let world = Self {
            name,
            kind,
            url,
            folder,
            namespace,
            layout,
            settings,
            ledger,
            counts,
        };
        if is_made_once {
            let leases = world.leases().expect("a store");
            leases.open(&meta.fingerprint()).expect("it answers");
        }
        world
    }

    /// A world whose leases have the durations of its store.
    pub(crate) fn with_own_durations(
        name: &'static str,
        kind: Kind,
        url: String,
        folder: &Path,
    ) -> Self {
        let (layout, meta) = ("max-peak", IdMeta::MAX_PEAK);
        Self {
            name,
            kind,
            url: Some(url),
            folder: folder.join(name),
            namespace: format!("{}-{name}", namespace_of(folder)),
            layout,
            settings: Vec::new(),
            ledger: Mutex::new(Ledger::new(meta)),
            counts: Mutex::default(),
        }
    }

    pub(crate) fn awaiting(&self) -> u64 {
        self.counts.lock().expect("no panic").awaiting
    }

    /// The state directory of a slot. For a pool in a file, it is the folder of the pool.
    pub(crate) fn state(&self, host: &str) -> PathBuf {
        match self.kind {
            Kind::File => self.folder.join("pool"),
            Kind::Fixed | Kind::Users | Kind::Network { .. } => self.folder.join(host),
        }
    }

    /// A program of this world with this state directory. `machine` is its fixed machine ID, if it needs one.
    pub(crate) fn command(
        &self,
        program: &Path,
        state: &Path,
        machine: u64,
        rng: &mut Rng,
    ) -> Command {
        let another_user = self.kind == Kind::Users && machine > 1;
        let mut command = if another_user {
            self.of_nobody(program)
        } else {
            Command::new(program)
        };
        command
            .env_clear()
            .current_dir(&self.folder)
            .args(FREE_PORTS)
            .args(&self.settings);
        command.args(["--namespace", &self.namespace]);
        command.args(["--layout", self.layout, "--log-level", "warn"]);
        let populator = rng.pick(&["lock", "sync", "atomic"]);
        command.args(["--workers", "2", "--populator", populator]);
        command.args(["--clock", rng.pick(&["precise", "coarse"])]);
        command.arg(rng.pick(&["--pacing=false", "--pacing=true"]));
        let borrowed = if self.kind == Kind::Users {
            "0"
        } else {
            rng.pick(&["0", "0", "3000"])
        };
        command.args(["--borrow-ahead-ms", borrowed]);
        command.arg("--state-dir").arg(state);
        match &self.url {
            Some(url) => {
                command.env("VESTA_MACHINE_STORE", url);
            }
            None if self.kind == Kind::Fixed => {
                command.args(["--machine-id", &machine.to_string()]);
            }
            None => {}
        }
        if !matches!(self.kind, Kind::Fixed | Kind::Users) {
            command.args(["--machine-count", rng.pick(&["1", "1", "2"])]);
        }
        if rng.percent(50) {
            command.arg("--wait-for-store");
        }
        command
    }

    /// A program started by another user, which may lack access to the build folder.
    fn of_nobody(&self, program: &Path) -> Command {
        let copy = self.folder.join(program.file_name().expect("a program"));
        if !copy.exists() {
            fs::copy(program, &copy).expect("a copy");
        }
        let mut command = Command::new(copy);
        command.uid(NOBODY).gid(NOBODY);
        command
    }

    /// The namespace in its store.
    pub(crate) fn leases(&self) -> Option<Leases> {
        let store = vesta_store::open(&self.url.as_ref()?.parse().unwrap()).ok()?;
        Some(Leases::new(store, &self.namespace))
    }

    pub(crate) fn describe(&self) -> String {
        format!(
            "{:9} {} {}",
            self.name,
            self.layout,
            self.settings.join(" ")
        )
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no panic")
    }

    pub(crate) fn count(&self, of: impl FnOnce(&mut Counts) -> &mut u64) {
        *of(&mut self.counts.lock().expect("no panic")) += 1;
    }

    /// The head of the table.
    pub(crate) fn head() -> String {
        let names = [
            "IDs",
            "machines",
            "intervals",
            "starts",
            "refused",
            "kills",
            "stops",
            "pauses",
            "steps",
            "folders",
            "outages",
            "refusing",
            "set back",
            "failovers",
            "refusals",
            "duplicates",
            "disorders",
        ];
        format!(
            "{:9}{}",
            "",
            names.map(|name| format!("{name:>11}")).concat()
        )
    }

    /// The row of this world.
    pub(crate) fn row(&self) -> String {
        let (ledger, counts) = (self.ledger(), self.counts.lock().expect("no panic"));
        let cells = [
            ledger.ids,
            ledger.machines() as u64,
            ledger.intervals() as u64,
            counts.starts,
            counts.refused_starts,
            counts.kills,
            counts.stops,
            counts.pauses,
            counts.steps,
            counts.folders,
            counts.outages,
            counts.refusing,
            counts.set_back,
            counts.fail_overs,
            counts.refused_calls,
            ledger.duplicates,
            ledger.disorders,
        ];
        format!(
            "{:9}{}",
            self.name,
            cells.map(|cell| format!("{cell:>11}")).concat()
        )
    }
}
