//! State files of arbitrary bytes: a file is either read as what was written into one of its two
//! slots, or refused. It is never treated as a fresh start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use vesta_intf::UnixMillis;

use super::slot::{CHECKSUM, SLOT, Slot, checksum};
use super::{BuildError, HostState, Own, Record, StateFolder};
use crate::testing::ManualClock;
use texts::{Changes, damaged};

#[path = "../../../../scripts/check/fuzz/texts.rs"]
mod texts;

const MACHINE: u64 = 7;

fn subject() -> String {
    "machine ID 7 of namespace `orders` with layout a layout".into()
}

/// Slot of this generation, as a running process writes it. No two are equal.
fn slot(generation: u64) -> Slot {
    let record = Record {
        epoch: 3,
        owner: 0x92b1_04c8_d37e_4f15,
        bound: 1_000_000 + generation,
        attempt: 77 + generation,
        released: generation.is_multiple_of(3),
        host: "höst".repeat(20),
        pid: 4711,
        from: 999_999,
        version: "0.1.0".into(),
        claimed: UnixMillis(1_767_225_500_000),
        info_time: UnixMillis(1_767_225_600_000),
        birth: 6,
        namespace: 5,
        standby: None,
        secret: crate::lease::Secret::new(9),
    };
    Slot {
        subject: subject(),
        generation,
        record,
    }
}

/// File whose newer slot is the second one.
fn good_file() -> Vec<u8> {
    [slot(6).encode(), slot(7).encode()].concat()
}

/// Slot with these bytes and a corrected checksum.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut text = bytes.get(CHECKSUM..).unwrap_or_default().to_vec();
    text.resize(SLOT - CHECKSUM, b' ');
    [checksum(&text).as_bytes(), &text].concat()
}

fn decoded(file: &[u8], at: usize) -> Option<Slot> {
    Slot::decode(file.get(at..at + SLOT)?)
}

/// Truncates the file last: some file systems sync a file that was emptied first.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Opens a file of these bytes as a store. Opening must not change the bytes, and what this host
/// remembers must be the same.
fn read(folder: &Path, file: &[u8]) -> Result<(Record, bool), BuildError> {
    let (namespace, fingerprint) = ("orders".into(), "a layout".into());
    let folder = StateFolder {
        path: folder.into(),
        namespace,
        fingerprint,
        place: String::new(),
    };
    let path = folder.path_of(MACHINE);
    write(&path, file).unwrap();
    let opened = folder
        .open(MACHINE, &ManualClock::at(UnixMillis(0)))
        .map(|store| (store.record(), store.is_damaged));
    let mut state = HostState::new(Some(folder), Own::default());
    let remembered: Vec<_> = state
        .survey()
        .into_iter()
        .map(|local| (local.machine, local.record))
        .collect();
    match &opened {
        Ok((record, _)) => assert_eq!(remembered, [(MACHINE, record.clone())]),
        Err(_) => assert_eq!(remembered, []),
    }
    drop(state);
    assert_eq!(fs::read(&path).unwrap(), file, "reading changes nothing");
    opened
}

/// Compares the reader with the meaning of the bytes, slot by slot.
fn check_file(folder: &Path, file: &[u8]) {
    let slots = [decoded(file, 0), decoded(file, SLOT)];
    let whole = slots.iter().flatten().count();
    let newest = slots
        .into_iter()
        .flatten()
        .max_by_key(|slot| slot.generation);
    match (read(folder, file), newest) {
        (Ok((record, is_damaged)), Some(newest)) => {
            assert_eq!((record, newest.subject), (newest.record, subject()));
            assert_eq!(is_damaged, whole < 2);
        }
        (Err(BuildError::Damaged(_)), None) => {}
        (Err(BuildError::Foreign { .. }), Some(newest)) => {
            assert_ne!(newest.subject, subject());
        }
        (opened, newest) => panic!("{opened:?}, but the newest slot is {newest:?}"),
    }
}

/// A slot that is read encodes to one that reads the same: nothing is made up.
fn check_slot(bytes: &[u8]) {
    if let Some(slot) = Slot::decode(bytes) {
        assert_eq!(Slot::decode(&slot.encode()), Some(slot));
    }
}

type Decode = fn(&[u8]) -> Option<Slot>;

/// Whatever can be read from a damaged file was written to it. (A checksum can be forged, but not
/// by chance.)
fn check_damage(decode: Decode, file: &[u8]) {
    for at in [0, SLOT] {
        let bytes = file.get(at..at + SLOT);
        if let Some(slot) = bytes.and_then(decode) {
            assert!(
                [6, 7].map(self::slot).contains(&slot),
                "{slot:?} was never written"
            );
        }
    }
}

#[test]
fn slots_of_any_bytes() {
    let good = [slot(7).encode()];
    bolero::check!()
        .with_iterations(30_000)
        .with_type()
        .for_each(|(raw, changes, bytes): &(bool, Changes, Vec<u8>)| {
            check_slot(&sealed(&if *raw {
                bytes.clone()
            } else {
                damaged(&good, 0, changes)
            }));
        });
}

#[test]
fn state_files_of_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    bolero::check!()
        .with_iterations(1_000)
        .for_each(|file: &[u8]| {
            check_file(folder.path(), file);
            check_damage(Slot::decode, file);
        });
}

#[test]
fn state_files_that_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let good = [good_file()];
    bolero::check!()
        .with_iterations(3_000)
        .with_type()
        .for_each(|changes: &Changes| {
            let file = damaged(&good, 0, changes);
            check_damage(Slot::decode, &file);
            check_file(folder.path(), &file);
        });
}

/// Slots of arbitrary contents with correct checksums.
#[test]
fn state_files_with_foreign_contents() {
    let folder = tempfile::tempdir().unwrap();
    let good = [6, 7].map(|generation| slot(generation).encode());
    bolero::check!()
        .with_iterations(1_000)
        .with_type()
        .for_each(|(first, second): &(Changes, Changes)| {
            let [first, second] = [(0, first), (1, second)].map(|(which, changes)| {
                // Few changes, so that the texts often stay valid.
                let few = changes.iter().take(3).copied().collect();
                sealed(&damaged(&good, which, &few))
            });
            check_file(folder.path(), &[first, second].concat());
        });
}

/// Reader that does not check the checksum.
fn planted(bytes: &[u8]) -> Option<Slot> {
    Slot::decode(&sealed(bytes))
}

#[test]
#[should_panic(expected = "test failed")]
fn a_reader_that_skips_the_checksum_is_noticed() {
    let good = [good_file()];
    bolero::check!()
        .with_iterations(3_000)
        .with_shrink_time(std::time::Duration::ZERO)
        .with_type()
        .for_each(|changes: &Changes| check_damage(planted, &damaged(&good, 0, changes)));
}
