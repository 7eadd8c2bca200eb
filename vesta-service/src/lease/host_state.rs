//! Host state: the state files in a folder, which remember the records that processes of this host held.
//!
//! A lock taken on a file proves that its last writer is gone. The bound in the file outlives a store that
//! forgets.

mod file;
#[cfg(all(test, not(any(loom, shuttle))))]
mod fuzz;
mod own;
mod pool;
mod slot;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Record, Snapshot};
use crate::BuildError;
use crate::clock::Clock;
pub(crate) use file::{FileStore, StateFolder};
pub(crate) use own::Own;
use pool::PoolFile;

/// Local record: the record of a machine ID whose last owner on this host is gone, as this host remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) machine: u64,
    pub(crate) record: Record,
    /// The record may lack up to one window of what was acknowledged.
    pub(crate) is_damaged: bool,
    /// Records of the same machine ID in stores at other places. Another store need not know them; a claim begins
    /// above them all the same.
    pub(crate) elsewhere: Vec<Record>,
}

impl Local {
    /// This memory, as far as it concerns the namespace with this uuid: a store that moved is known by it.
    pub(crate) fn of(mut self, uuid: u128) -> Self {
        let moved = self.elsewhere.iter().filter(|it| it.namespace == uuid);
        let here = (self.record.namespace == uuid).then_some(&self.record);
        let newest = moved.chain(here).max_by_key(|it| (it.epoch, it.bound));
        if let Some(newest) = newest.filter(|it| **it != self.record).cloned() {
            self.elsewhere
                .push(std::mem::replace(&mut self.record, newest));
        }
        self
    }

    /// Bound that this host remembers of the machine ID, in whatever store, beside this record in the present one. A
    /// release of the remembered claim took effect, so the record's own bound is exact.
    pub(crate) fn bound_beside(&self, record: Option<&Record>) -> u64 {
        let released = record.is_some_and(|it| it.is_release_of(&self.record));
        let own = if released && !self.is_damaged {
            0
        } else {
            self.record.bound
        };
        let elsewhere = self.elsewhere.iter().map(|record| record.bound);
        elsewhere.fold(own, u64::max)
    }

    /// True if the store still has what it acknowledged. Also true if the namespace's floor is at or above
    /// the record's bound, or if the bound is at or below `forgettable`, up to where this namespace may have
    /// been forgotten.
    pub(crate) fn is_known_to(&self, snapshot: &Snapshot, forgettable: u64) -> bool {
        let (local, namespace) = (&self.record, &snapshot.namespace);
        let knows = |current: &Record| match current.birth == local.birth {
            true => {
                current.epoch > local.epoch
                    || current.epoch == local.epoch
                        && (current.owner != local.owner || current.bound >= local.bound)
            }
            false => current.bound >= local.bound, // an operator put it in place of a lost one
        };
        local.namespace == 0
            || local.bound <= namespace.floor
            || local.namespace == namespace.uuid
                && (local.bound <= forgettable
                    || snapshot.records.get(&self.machine).is_some_and(knows))
    }
}

/// State files of one namespace in a folder. During a search this process locks those that no living process
/// holds.
#[derive(Debug)]
pub(crate) struct HostState {
    folder: Option<StateFolder>,
    free: Vec<FileStore>,
    /// Files of the machine IDs that are held.
    kept: BTreeMap<u64, FileStore>,
    /// Pool file with their records; opened with the first one.
    pool: Option<PoolFile>,
    own: Own,
    /// True once a write failed. No further write is tried: after a failed sync the system may have dropped
    /// the very pages that a later one would report as written.
    is_broken: bool,
}

impl HostState {
    /// State of a folder, if one is given, and what this process itself remembers.
    pub(crate) const fn new(folder: Option<StateFolder>, own: Own) -> Self {
        Self {
            folder,
            free: Vec::new(),
            kept: BTreeMap::new(),
            pool: None,
            own,
            is_broken: false,
        }
    }

    /// Records that this process held in the namespace, under this uuid (if the namespace exists) or an
    /// earlier one.
    pub(crate) fn own(&mut self, uuid: Option<u128>) -> Vec<Local> {
        self.own.under(uuid)
    }

    /// Remembers that nothing was issued at or above this position of a machine ID, at which it was sealed.
    pub(crate) fn sealed(&mut self, machine: u64, sealed_at: u64) {
        if let Some(record) = self.own.last(machine) {
            let bound = record.bound.min(sealed_at);
            self.remember([(machine, &Record { bound, ..record })]);
        }
    }

    /// Records whose owners are gone. Locks their files until they are [kept](Self::keep) or
    /// [let go](Self::let_go). A folder that does not exist has none; a file that cannot be read is skipped.
    pub(crate) fn survey(&mut self) -> Vec<Local> {
        if let Some(folder) = &self.folder {
            let machines = machines_in(&folder.path, &folder.namespace).into_iter();
            let pools = folder.pools();
            let open = |machine| folder.open_existing(machine, pools.as_ref().ok()?).ok();
            let found = machines.filter_map(open);
            // A file that was just created remembers nothing, and its creator is about to lock it.
            self.free.extend(found.filter(FileStore::is_used));
        }
        self.free.iter().map(FileStore::local).collect()
    }

    /// True if no living process on this host holds the machine ID, whatever the store shows.
    pub(crate) fn is_free(&self, machine: u64) -> bool {
        let Some(folder) = &self.folder else {
            return true;
        };
        self.free.iter().any(|file| file.machine == machine) || !folder.is_in_use(machine)
    }

    /// Locks claimed machine IDs; `false` for one that another process has locked meanwhile.
    pub(crate) fn keep(&mut self, machines: &[u64], clock: &dyn Clock) -> Vec<bool> {
        let together = |folder: &StateFolder| {
            folder.create_missing(machines)?;
            folder.pools()
        };
        let pools = match self.folder.as_ref().map(together).transpose() {
            Ok(pools) => pools,
            Err(error) => {
                tracing::debug!(%error, "state files could not be created together");
                None
            }
        };
        machines
            .iter()
            .map(|machine| self.keep_one(*machine, pools.as_deref(), clock))
            .collect()
    }

    fn keep_one(&mut self, machine: u64, pools: Option<&[PathBuf]>, clock: &dyn Clock) -> bool {
        let Some(folder) = &self.folder else {
            return true;
        };
        let found = self.free.iter().position(|file| file.machine == machine);
        let opened = match found {
            Some(found) => Ok(self.free.swap_remove(found)),
            None => match pools {
                Some(pools) => folder.open_beside(machine, pools, clock),
                None => folder.open(machine, clock),
            },
        };
        match opened {
            Ok(file) => drop(self.kept.insert(machine, file)),
            Err(BuildError::InUse(_)) => return false,
            Err(error) => tracing::warn!(
                %error,
                "this host will not remember its machine ID: a restart takes another one"
            ),
        }
        true
    }

    /// Unlocks a machine ID.
    pub(crate) fn give_up(&mut self, machine: u64) {
        self.kept.remove(&machine);
    }

    /// Unlocks the surveyed files.
    pub(crate) fn let_go(&mut self) {
        self.free.clear();
    }

    /// Remembers what the store acknowledged, with one sync. A machine ID whose record cannot be written
    /// stays locked, which shows this host that it is in use.
    pub(crate) fn remember<'a>(&mut self, records: impl IntoIterator<Item = (u64, &'a Record)>) {
        let slot = |(machine, record): (u64, &Record)| {
            self.own.remember(machine, record);
            Some((machine, self.kept.get(&machine)?.advance(record)))
        };
        let slots: Vec<_> = records.into_iter().filter_map(slot).collect();
        let Some(folder) = self
            .folder
            .as_ref()
            .filter(|_| !slots.is_empty() && !self.is_broken)
        else {
            return;
        };
        let path = folder.pool_path();
        let opened = match self.pool.take() {
            Some(pool) => Ok(pool),
            None => PoolFile::open(&path),
        };
        let slots = slots.iter().map(|(machine, slot)| (*machine, slot));
        match opened.and_then(|pool| pool.write(slots).map(|()| pool)) {
            Ok(pool) => self.pool = Some(pool),
            Err(error) => {
                self.is_broken = true;
                let path = path.display();
                tracing::warn!(%error, %path, "this host no longer remembers how far its machine IDs were used");
            }
        }
    }
}

/// Machine IDs whose state files are in a folder, by name alone. Reading a file takes its lock, which could
/// keep the owner of another namespace's file from starting at that moment.
fn machines_in(folder: &Path, namespace: &str) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let machine = |name: &str| {
        let (of, machine) = name.strip_suffix(".state")?.rsplit_once('-')?;
        machine.parse().ok().filter(|_| of == namespace)
    };
    entries
        .flatten()
        .filter_map(|entry| machine(entry.file_name().to_str()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Namespace;
    use crate::testing::ManualClock;
    use vesta_intf::UnixMillis;

    #[test]
    fn only_files_named_for_the_namespace_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "eu-7.state",
            "eu-1-7-7.state",
            "a-eu-1-7.state",
            "eu-1-x.state",
            "eu-1-7.tmp",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
            assert!(machines_in(folder.path(), "eu-1").is_empty(), "{name}");
        }
        fs::write(folder.path().join("eu-1-7.state"), "").unwrap();
        assert_eq!(machines_in(folder.path(), "eu-1"), [7]);
    }

    fn clock() -> ManualClock {
        ManualClock::at(UnixMillis(0))
    }

    fn folder_of(path: &Path, namespace: &str, fingerprint: &str) -> StateFolder {
        let [namespace, fingerprint] = [namespace, fingerprint].map(str::to_owned);
        StateFolder {
            path: path.into(),
            namespace,
            fingerprint,
            place: "a store".into(),
        }
    }

    /// Machine IDs of the files that a search adopts.
    fn adopted(folder: &Path, fingerprint: &str) -> Vec<u64> {
        let mut state = HostState::new(Some(folder_of(folder, "eu", fingerprint)), Own::default());
        state
            .survey()
            .into_iter()
            .map(|local| local.machine)
            .collect()
    }

    /// Host state that holds a machine ID.
    fn used(folder: &Path, namespace: &str) -> HostState {
        let mut state = HostState::new(
            Some(folder_of(folder, namespace, "a layout")),
            Own::default(),
        );
        assert_eq!(state.keep(&[7], &clock()), [true]);
        state.remember([(
            7,
            &Record {
                epoch: 1,
                ..Record::default()
            },
        )]);
        state
    }

    #[test]
    fn a_file_of_the_namespace_is_adopted_and_one_of_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        for namespace in ["eu", "eu-1"] {
            used(folder.path(), namespace);
        }
        assert_eq!(adopted(folder.path(), "a layout"), [7]);
        assert!(adopted(folder.path(), "another layout").is_empty());
    }

    /// The release arrived after its process had given up: the host knows only the bound before it.
    #[test]
    fn a_release_that_took_effect_counts_for_the_claim_that_it_ended() {
        let record = Record {
            namespace: 1,
            birth: 2,
            epoch: 3,
            owner: 4,
            bound: 100,
            ..Record::default()
        };
        let released = Record {
            owner: 0,
            released: true,
            bound: 60,
            ..record.clone()
        };
        let elsewhere = Record {
            bound: 80,
            ..record.clone()
        };
        let local = |is_damaged, elsewhere| Local {
            machine: 7,
            record: record.clone(),
            is_damaged,
            elsewhere,
        };
        assert_eq!(local(false, vec![]).bound_beside(Some(&released)), 0);
        assert_eq!(
            local(false, vec![elsewhere]).bound_beside(Some(&released)),
            80
        );
        assert_eq!(local(true, vec![]).bound_beside(Some(&released)), 100);
        assert_eq!(local(false, vec![]).bound_beside(None), 100);
        for change in [
            |it: &mut Record| it.released = false,
            |it: &mut Record| it.epoch = 2,
            |it: &mut Record| it.birth = 9,
            |it: &mut Record| it.namespace = 9,
        ] {
            let mut other = released.clone();
            change(&mut other);
            assert_eq!(local(false, vec![]).bound_beside(Some(&other)), 100);
        }
    }

    #[test]
    fn let_go_unlocks_the_surveyed_files() {
        let folder = tempfile::tempdir().unwrap();
        used(folder.path(), "eu");
        let [mut searching, other] = [0, 1].map(|_| {
            let folder = folder_of(folder.path(), "eu", "a layout");
            HostState::new(Some(folder), Own::default())
        });
        assert_eq!(searching.survey().len(), 1);
        assert!(!other.is_free(7), "it is locked during the search");
        searching.let_go();
        assert!(other.is_free(7));
    }

    #[test]
    fn a_survey_skips_files_without_a_claim() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder_of(folder.path(), "eu", "a layout").create_missing(&[7]);
        made.unwrap();
        assert_eq!(machines_in(folder.path(), "eu"), [7]);
        assert!(adopted(folder.path(), "a layout").is_empty());
    }

    #[test]
    fn file_copied_under_another_machine_id_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let original = used(folder.path(), "eu");
        for copy in ["eu-8.state", "eu-07.state"] {
            fs::copy(folder.path().join("eu-7.state"), folder.path().join(copy)).unwrap();
        }
        assert!(
            adopted(folder.path(), "a layout").is_empty(),
            "7 is in use, and 8 is a copy of it"
        );
        drop(original);
        assert_eq!(adopted(folder.path(), "a layout"), [7]);
    }

    #[test]
    fn file_of_another_layout_is_in_use_only_while_locked() {
        let folder = tempfile::tempdir().unwrap();
        let [one, another] = ["a layout", "another layout"];
        let [one, another] = [one, another].map(|layout| folder_of(folder.path(), "eu", layout));
        let own = one.open(7, &clock()).unwrap();
        let other = another.open(8, &clock()).unwrap();
        let mut state = HostState::new(Some(one.clone()), Own::default());
        assert_eq!(state.survey(), []);
        assert!(!state.is_free(7) && !state.is_free(8) && state.is_free(9));
        assert_eq!(
            state.keep(&[7], &clock()),
            [false],
            "another process has it"
        );
        drop((own, other));
        assert!(state.is_free(7) && state.is_free(8));
        assert_eq!(state.keep(&[7], &clock()), [true]);
        let mut later = HostState::new(Some(one), Own::default());
        assert_eq!(later.survey(), []);
        assert!(!later.is_free(7), "it is kept");
    }

    fn of_layout() -> Namespace {
        Namespace {
            fingerprint: "a layout".into(),
            ..Namespace::default()
        }
    }

    #[test]
    fn store_that_lost_what_it_acknowledged_is_noticed() {
        let acknowledged = Record {
            namespace: 1,
            birth: 5,
            epoch: 3,
            owner: 9,
            bound: 100,
            ..Record::default()
        };
        let local = |record: &Record| Local {
            machine: 7,
            record: record.clone(),
            is_damaged: false,
            elsewhere: Vec::new(),
        };
        let is_known = |uuid, floor, forgettable, machine, known: &Record| {
            let namespace = Namespace {
                uuid,
                floor,
                ..of_layout()
            };
            let snapshot = Snapshot::of(namespace, [(machine, known.clone())]);
            local(&acknowledged).is_known_to(&snapshot, forgettable)
        };
        let same = |change: fn(&mut Record)| {
            let mut record = acknowledged.clone();
            change(&mut record);
            record
        };
        for (uuid, floor, machine, known) in [
            (1, 0, 7, same(|_| ())),
            (1, 0, 7, same(|record| record.bound = 101)),
            (
                1,
                0,
                7,
                same(|record| (record.owner, record.bound) = (8, 50)),
            ), // released
            (
                1,
                0,
                7,
                same(|record| (record.epoch, record.bound) = (4, 50)),
            ),
            (
                1,
                0,
                7,
                same(|record| (record.birth, record.epoch) = (6, 0)),
            ), // repaired
            (2, 100, 8, same(|_| ())), // above what was used
        ] {
            assert!(is_known(uuid, floor, 0, machine, &known), "{known:?}");
        }
        for (uuid, floor, machine, known) in [
            (1, 0, 7, same(|record| record.bound = 99)),
            (1, 0, 7, same(|record| record.epoch = 2)),
            (
                1,
                0,
                7,
                same(|record| (record.epoch, record.owner) = (2, 8)),
            ),
            (
                1,
                0,
                7,
                same(|record| (record.birth, record.bound) = (6, 99)),
            ),
            (1, 0, 8, same(|_| ())), // no record
            (2, 0, 7, same(|_| ())), // another store
            (2, 99, 7, same(|_| ())),
        ] {
            assert!(!is_known(uuid, floor, 99, machine, &known), "{known:?}");
            assert_eq!(
                is_known(uuid, floor, 100, machine, &known),
                uuid == 1,
                "{known:?}"
            );
        }
        let own = Record {
            namespace: 0,
            ..acknowledged.clone()
        };
        let alone = Snapshot::of(
            Namespace {
                uuid: 1,
                ..of_layout()
            },
            [],
        );
        assert!(
            local(&own).is_known_to(&alone, 0),
            "a record without a namespace counts as known"
        );
    }
}
