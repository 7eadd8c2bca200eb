//! Keys and values, and the scripts that read and change them.

use vesta_service::{Cas, Expect, Namespace, Record, StoreError, UnixMillis};

use super::link::{Link, script};
use super::values::{decimal, flaw_of_key, number, string};

script!(OPEN, "scripts/common.lua", "scripts/open.lua");
script!(READ, "scripts/common.lua", "scripts/read.lua");
script!(LIST, "scripts/common.lua", "scripts/list.lua");
script!(CAS, "scripts/common.lua", "scripts/cas.lua");
script!(RAISE_FLOOR, "scripts/common.lua", "scripts/raise_floor.lua");

/// How many values a record has.
const VALUES: usize = 8;

/// A namespace, as a request means it.
#[derive(Debug)]
pub(super) struct Space<'a> {
    name: &'a str,
    /// What it was when it was opened here, if it was.
    uuid: Option<u128>,
    meta: String,
    machines: String,
    /// What the key of each record begins with.
    records: String,
}

/// What became of a change.
#[derive(Debug)]
pub(super) enum Change {
    /// It took effect, or had done so before: this outcome counts once it cannot be lost.
    Made(Cas),
    /// It did not.
    Refused(Record),
}

impl<'a> Space<'a> {
    pub(super) fn new(prefix: &str, name: &'a str, uuid: Option<u128>) -> Self {
        // The braces have a cluster keep all of it in one place.
        let key = |kind| format!("{prefix}:{{{name}}}:{kind}");
        Self { name, uuid, meta: key("meta"), machines: key("machines"), records: key("rec:") }
    }

    fn uuid(&self) -> String {
        self.uuid.map(hex).unwrap_or_default()
    }

    fn record(&self, machine: u64) -> Result<String, StoreError> {
        Ok(format!("{}{}", self.records, decimal(machine)?))
    }

    /// `None` if there is none and none was to be made.
    pub(super) fn open(
        &self,
        link: &mut Link,
        new_uuid: u128,
        fingerprint: &str,
        create: bool,
    ) -> Result<Option<Namespace>, StoreError> {
        let create = if create { "1" } else { "0" };
        let arguments = [&hex(new_uuid), fingerprint, create];
        let reply = link.run(&OPEN, &[&self.meta, &self.machines], &arguments)?;
        match self.word_of(&reply)? {
            (b"unopened", _) => Ok(None),
            (b"found", [uuid, fingerprint, floor]) => Ok(Some(Namespace {
                uuid: owner(uuid).ok_or_else(|| damaged(&self.meta))?,
                fingerprint: string(fingerprint).ok_or_else(|| damaged(&self.meta))?,
                floor: number(floor).ok_or_else(|| damaged(&self.meta))?,
            })),
            _ => Err(self.flaw(&reply)),
        }
    }

    pub(super) fn read(&self, link: &mut Link, machine: u64) -> Result<Option<Record>, StoreError> {
        let (key, uuid) = (self.record(machine)?, self.uuid());
        let keys = [&*self.meta, &self.machines, &key];
        let reply = link.run(&READ, &keys, &[&uuid, &decimal(machine)?])?;
        match self.word_of(&reply)? {
            (b"none", _) => Ok(None),
            (b"found", values) => decode(&key, values).map(Some),
            _ => Err(self.flaw(&reply)),
        }
    }

    pub(super) fn list(&self, link: &mut Link) -> Result<Vec<(u64, Record)>, StoreError> {
        let reply =
            link.run(&LIST, &[&self.meta, &self.machines], &[&self.uuid(), &self.records])?;
        let (b"found", values) = self.word_of(&reply)? else { return Err(self.flaw(&reply)) };
        let mut records = values
            .chunks(1 + VALUES)
            .map(|chunk| {
                let machine = number(&chunk[0]).ok_or_else(|| damaged(&self.machines))?;
                Ok((machine, decode(&self.record(machine)?, &chunk[1..])?))
            })
            .collect::<Result<Vec<_>, _>>()?;
        records.sort_unstable_by_key(|(machine, _)| *machine);
        Ok(records)
    }

    pub(super) fn cas(
        &self,
        link: &mut Link,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Change, StoreError> {
        let key = self.record(machine)?;
        let mut arguments = vec![
            self.uuid(),
            decimal(machine)?,
            decimal(expect.epoch)?,
            hex(expect.owner),
            decimal(expect.bound)?,
        ];
        arguments.extend(encode(new)?);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let reply = link.run(&CAS, &[&self.meta, &self.machines, &key], &arguments)?;
        match self.word_of(&reply)? {
            (b"done", _) => Ok(Change::Made(Cas::Done)),
            (b"absent", [floor]) => {
                let floor = number(floor).ok_or_else(|| damaged(&self.meta))?;
                Ok(Change::Refused(Record::unclaimed(floor)))
            }
            (b"conflict", [own, values @ ..]) => {
                let current = decode(&key, values)?;
                Ok(match &**own {
                    b"1" => Change::Made(Cas::Conflict(current)),
                    _ => Change::Refused(current),
                })
            }
            // What was opened here is no more: neither is the record, whatever stands in its place.
            (b"unopened" | b"changed", _) if self.uuid.is_some() => {
                Ok(Change::Refused(Record::unclaimed(0)))
            }
            _ => Err(self.flaw(&reply)),
        }
    }

    pub(super) fn raise_floor(&self, link: &mut Link, floor: u64) -> Result<u64, StoreError> {
        let arguments = [&*self.uuid(), &decimal(floor)?];
        let reply = link.run(&RAISE_FLOOR, &[&self.meta, &self.machines], &arguments)?;
        match self.word_of(&reply)? {
            (b"found", [floor]) => number(floor).ok_or_else(|| damaged(&self.meta)),
            _ => Err(self.flaw(&reply)),
        }
    }

    /// The word that says what a reply is, and the rest.
    fn word_of<'r>(&self, reply: &'r [Vec<u8>]) -> Result<(&'r [u8], &'r [Vec<u8>]), StoreError> {
        match reply.split_first() {
            Some((word, rest)) => Ok((word, rest)),
            None => Err(self.flaw(reply)),
        }
    }

    /// What a reply means that none of the requests takes for an answer.
    fn flaw(&self, reply: &[Vec<u8>]) -> StoreError {
        let name = self.name;
        let words: Vec<_> = reply.iter().map(|word| String::from_utf8_lossy(word)).collect();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        StoreError::permanent(match words[..] {
            ["unopened"] if self.uuid.is_none() => format!("namespace `{name}` was not opened"),
            ["unopened" | "changed"] => format!(
                "namespace `{name}` is no longer the one that was opened: this Redis was wiped, \
                 restored, or is another one; start again"
            ),
            ["lost", key, witness] => format!(
                "key `{key}` is missing although `{witness}` is there: it was deleted, evicted or \
                 has expired; restore it, or use another namespace"
            ),
            ["damaged", key] => return damaged(key),
            _ => flaw_of_key(&words),
        })
    }
}

fn damaged(key: &str) -> StoreError {
    StoreError::permanent(format!(
        "key `{key}` holds what no Vesta wrote; restore it, or use another namespace"
    ))
}

fn hex(number: u128) -> String {
    format!("{number:032x}")
}

fn encode(record: &Record) -> Result<[String; VALUES], StoreError> {
    Ok([
        decimal(record.epoch)?,
        hex(record.owner),
        decimal(record.bound)?,
        decimal(record.attempt)?,
        u8::from(record.released).to_string(),
        record.host.clone(),
        record.pid.to_string(),
        decimal(record.info_time.0)?,
    ])
}

fn decode(key: &str, values: &[Vec<u8>]) -> Result<Record, StoreError> {
    let decoded = || {
        let [epoch, owner_, bound, attempt, released, host, pid, info_time] = values else {
            return None;
        };
        Some(Record {
            epoch: number(epoch)?,
            owner: owner(owner_)?,
            bound: number(bound)?,
            attempt: number(attempt)?,
            released: number::<u8>(released).filter(|flag| *flag <= 1)? == 1,
            host: string(host)?,
            pid: number(pid)?,
            info_time: UnixMillis(number(info_time)?),
        })
    };
    decoded().ok_or_else(|| damaged(key))
}

/// As [`hex`] writes it.
fn owner(value: &[u8]) -> Option<u128> {
    let text = std::str::from_utf8(value).ok()?;
    u128::from_str_radix(text, 16).ok().filter(|number| hex(*number) == text)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            epoch: 7,
            owner: u128::MAX - 1,
            bound: i64::MAX.unsigned_abs(),
            attempt: (1 << 53) + 1,
            released: true,
            host: "a host\0\u{1F980}".into(),
            pid: u32::MAX,
            info_time: UnixMillis(0),
        }
    }

    fn values() -> Vec<Vec<u8>> {
        encode(&record()).unwrap().map(String::into_bytes).into()
    }

    #[test]
    fn a_record_is_decoded_as_it_was_encoded() {
        assert_eq!(decode("k", &values()).unwrap(), record());
    }

    #[test]
    fn what_no_vesta_writes_is_refused_and_the_key_named() {
        for (value, text) in [
            (0, ""),
            (0, "07"),
            (0, "+7"),
            (0, "-7"),
            (0, " 7"),
            (0, "7.0"),
            (0, "7e0"),
            (2, "9223372036854775808"),
            (2, "18446744073709551616"),
            (1, "0"),
            (1, "0000000000000000000000000000000A"),
            (1, "+000000000000000000000000000000a"),
            (4, "2"),
            (4, "true"),
            (6, "4294967296"),
        ] {
            let mut values = values();
            values[value] = text.into();
            let error = decode("vesta:{x}:rec:1", &values).unwrap_err();
            assert!(error.is_permanent());
            assert!(error.to_string().contains("`vesta:{x}:rec:1`"), "{error}");
        }
        let mut not_text = values();
        not_text[5] = vec![0xFF];
        decode("k", &not_text).unwrap_err();
        decode("k", &values()[1..]).unwrap_err();
    }

    #[test]
    fn numbers_of_64_bits_are_refused() {
        for record in [
            Record { epoch: 1 << 63, ..record() },
            Record { bound: 1 << 63, ..record() },
            Record { attempt: u64::MAX, ..record() },
            Record { info_time: UnixMillis(1 << 63), ..record() },
        ] {
            let error = encode(&record).unwrap_err();
            assert!(error.is_permanent() && error.to_string().contains("63 bits"), "{error}");
        }
    }
}
