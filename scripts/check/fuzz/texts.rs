//! Shared by the fuzz targets of all crates, included by `#[path]`: the inputs kept in a crate's
//! folder `fuzz/`, and nearly valid inputs.
//!
//! A target of bytes replays the kept inputs and then takes random bytes. Its twin damages the kept
//! inputs, because random bytes alone do not get far into a parser.

use std::fs;
use std::path::Path;

/// A few changes: kind, position, and value.
pub(crate) type Changes = Vec<(u8, u16, u16)>;

/// Edge cases of parsers.
const TOKENS: [&str; 48] = [
    "",
    "0",
    "00",
    "-1",
    "1e3",
    "0x10",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "null",
    "true",
    "{}",
    "[]",
    "[[[[[[[[",
    "\"",
    "'",
    "\\u0000",
    "\\ud800",
    ":",
    "://",
    "@",
    "/",
    "..",
    "?",
    "&",
    "=",
    "#",
    "%",
    "%00",
    "%2F",
    "%ff",
    ",",
    ";",
    "\n",
    "\0",
    "\u{feff}",
    "é",
    "\u{1F980}",
    "１",
];

/// The inputs that a crate keeps for a target, in order of name.
#[allow(dead_code, reason = "some targets make their inputs themselves")]
pub(crate) fn kept(crate_folder: &str, target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(crate_folder).join("fuzz").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths
        .iter()
        .map(|path| fs::read(path).expect("a file"))
        .collect()
}

/// One of the inputs, changed in a few places; unchanged only if the changes are empty.
pub(crate) fn damaged(inputs: &[Vec<u8>], which: u16, changes: &Changes) -> Vec<u8> {
    let mut input = inputs[usize::from(which) % inputs.len()].clone();
    for &(kind, at, with) in changes {
        let at = usize::from(at) % (input.len() + 1);
        let byte = with.to_le_bytes()[0];
        let end = (at + 1 + usize::from(byte) % 8).min(input.len());
        let token = TOKENS[usize::from(with) % TOKENS.len()].bytes();
        match kind % 8 {
            0 => drop(input.get_mut(at).map(|old| *old = byte)),
            1 => drop(input.get_mut(at).map(|old| *old ^= 1 << (byte % 8))),
            2 => input.insert(at, byte),
            3 => drop(input.drain(at..end)),
            4 => drop(input.splice(at..at, token)),
            5 => drop(input.splice(at..end, token)),
            6 => input.extend_from_within(at..end),
            _ => input.truncate(at),
        }
    }
    input
}
