//! One node: a service with its clock, its folder and its connection to the store.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use vesta_service::contract::SequenceStart;
use vesta_service::options::Drive;
use vesta_service::{BuildError, LocalIdService, MachineSource};
use vesta_testkit::Rng;

use super::ledger::Progress;
use super::plan::{NAMESPACES, NodePlan, Plan, Source};
use super::planted::Answers;
use super::store::{Shared, Wire};
use super::time::HostClock;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) number: usize,
    pub(crate) plan: NodePlan,
    pub(crate) clock: HostClock,
    pub(crate) folder: PathBuf,
    pub(crate) wire: Arc<Wire>,
    pub(crate) service: Option<LocalIdService>,
    /// Stopped in the middle of a call.
    pub(crate) paused: bool,
    /// When its keeper runs next, in true time.
    pub(crate) keeper_at: u64,
    pub(crate) progress: Progress,
    pub(crate) answers: Answers,
    /// It has held a machine ID before.
    pub(crate) started: bool,
    /// Its files were damaged since its last run.
    pub(crate) torn: bool,
}

/// The contents of some files.
pub(crate) type Files = Vec<(PathBuf, Vec<u8>)>;

impl Node {
    pub(crate) fn namespace(&self) -> &'static str {
        NAMESPACES[self.plan.space]
    }

    /// Its service's namespace: with a fixed machine ID, one that no other world on this host uses.
    pub(crate) fn own_namespace(&self) -> String {
        let world = self
            .folder
            .parent()
            .expect("the world's")
            .as_os_str()
            .as_encoded_bytes();
        match self.is_fixed() {
            true => format!("{}-{:08x}", self.namespace(), crc32fast::hash(world)),
            false => self.namespace().to_owned(),
        }
    }

    /// True if the store coordinates its machine IDs.
    pub(crate) fn is_of_the_store(&self) -> bool {
        matches!(self.plan.source, Source::Pool(_) | Source::Reserved(_))
    }

    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self.plan.source, Source::Fixed(_))
    }

    /// Starts a new process.
    pub(crate) fn start(&mut self, plan: &Plan, shared: &Arc<Shared>) -> Result<(), BuildError> {
        self.wire = Wire::new(shared, self.plan.host, plan.timing);
        self.wire.begin(2);
        let store = self.wire.clone();
        let machine = match self.plan.source {
            Source::Pool(last) => MachineSource::Pool {
                store,
                range: Some(0..=last),
            },
            Source::Reserved(id) => MachineSource::Reserved { store, id },
            Source::Fixed(id) => MachineSource::Fixed(id),
            Source::Stateless(id) => MachineSource::Stateless(id),
        };
        let service = LocalIdService::builder()
            .layout(plan.layout)
            .namespace(self.own_namespace())
            .machine(machine)
            .machine_count(self.plan.count)
            .claim_order(self.plan.order)
            .populator(self.plan.populator)
            .sequence_start(self.plan.start)
            .clock_kind(self.plan.clock)
            .pacing(self.plan.pacing)
            .borrow_ahead(Duration::from_millis(
                self.plan.borrow * plan.layout.spec().unit.millis(),
            ))
            .timing(plan.timing)
            .state_dir(&self.folder)
            .clock(Arc::new(self.clock.clone()))
            .drive(Drive::ByHand)
            .build()?;
        self.service = Some(service);
        self.paused = false;
        self.answers = Answers::new(plan.planted);
        self.progress = Progress::new(match self.plan.start {
            SequenceStart::Zero => 1,
            SequenceStart::Random(below) => below.into(),
        });
        self.progress.lossy = !plan.is_checked();
        self.started = true;
        Ok(())
    }

    /// Ends like a killed process: none of its final actions reaches the store or its folder, and
    /// its locks are dropped.
    pub(crate) fn crash(&mut self) {
        self.wire.kill();
        let files = self.state_file();
        self.service = None;
        write(files);
    }

    /// Its state file, if it has a fixed machine ID; the file is then its store.
    pub(crate) fn state_file(&self) -> Files {
        let Source::Fixed(id) = self.plan.source else {
            return Vec::new();
        };
        let name = format!("{}-{id}.state", self.own_namespace());
        read(&self.folder, |path| path.ends_with(&name))
    }

    /// Damages one half of each of its files, like an interrupted write.
    pub(crate) fn tear(&self, rng: &mut Rng) -> usize {
        let files = if self.is_fixed() {
            self.state_file()
        } else {
            read(&self.folder, |_| true)
        };
        let half = rng.index(2) * 1024;
        let torn = files.len();
        write(files.into_iter().map(|(path, mut bytes)| {
            // The pool file is as long as its last machine ID needs.
            if let Some(at) = (half + rng.index(1024)).checked_rem(bytes.len()) {
                bytes[at] ^= 1 << rng.below(8);
            }
            (path, bytes)
        }));
        torn
    }

    /// Loses the local record of its host.
    pub(crate) fn lose_folder(&self) {
        for (path, _) in read(&self.folder, |_| true) {
            fs::remove_file(path).expect("it was there");
        }
    }

    /// The machine IDs it currently holds.
    pub(crate) fn machines(&self) -> BTreeSet<u64> {
        let service = self.service.as_ref();
        service
            .map(|s| s.status().machines.into_iter().collect())
            .unwrap_or_default()
    }
}

fn read(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Files {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.retain(|path| wanted(path));
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).expect("readable")))
        .collect()
}

pub(crate) fn write(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) {
    for (path, bytes) in files {
        fs::write(path, bytes).expect("writable");
    }
}
