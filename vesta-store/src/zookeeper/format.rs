//! What stands in a znode, as documented at [`ZookeeperStore`](super::ZookeeperStore).

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vesta_service::{Namespace, Record, StoreError, UnixMillis};
use zookeeper_client::Stat;

use super::errors::foreign;

const SCHEMA: u64 = 1;

#[derive(Deserialize)]
struct Schema {
    schema: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredNamespace<'a> {
    schema: u64,
    uuid: Cow<'a, str>,
    fingerprint: Cow<'a, str>,
    floor: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRecord<'a> {
    schema: u64,
    epoch: u64,
    owner: Cow<'a, str>,
    bound: u64,
    attempt: u64,
    released: bool,
    host: Cow<'a, str>,
    pid: u32,
    info_time: u64,
}

#[derive(Serialize)]
struct Alive<'a> {
    host: &'a str,
    pid: u32,
}

pub(super) fn namespace(namespace: &Namespace) -> Result<Vec<u8>, StoreError> {
    let Namespace { uuid, fingerprint, floor } = namespace;
    Ok(json(&StoredNamespace {
        schema: SCHEMA,
        uuid: hex(*uuid).into(),
        fingerprint: fingerprint.into(),
        floor: within_63_bits(*floor)?,
    }))
}

pub(super) fn record(record: &Record) -> Result<Vec<u8>, StoreError> {
    Ok(json(&StoredRecord {
        schema: SCHEMA,
        epoch: within_63_bits(record.epoch)?,
        owner: hex(record.owner).into(),
        bound: within_63_bits(record.bound)?,
        attempt: within_63_bits(record.attempt)?,
        released: record.released,
        host: (&record.host).into(),
        pid: record.pid,
        info_time: within_63_bits(record.info_time.0)?,
    }))
}

pub(super) fn alive(record: &Record) -> Vec<u8> {
    json(&Alive { host: &record.host, pid: record.pid })
}

pub(super) fn read_namespace(
    path: &str,
    data: &[u8],
    stat: &Stat,
) -> Result<Namespace, StoreError> {
    let stored: StoredNamespace<'_> = read(path, data, stat)?;
    let number = |number| within_63_bits(number).map_err(|error| foreign(path, error));
    Ok(Namespace {
        uuid: read_hex(path, &stored.uuid)?,
        fingerprint: stored.fingerprint.into_owned(),
        floor: number(stored.floor)?,
    })
}

pub(super) fn read_record(path: &str, data: &[u8], stat: &Stat) -> Result<Record, StoreError> {
    let stored: StoredRecord<'_> = read(path, data, stat)?;
    let number = |number| within_63_bits(number).map_err(|error| foreign(path, error));
    Ok(Record {
        epoch: number(stored.epoch)?,
        owner: read_hex(path, &stored.owner)?,
        bound: number(stored.bound)?,
        attempt: number(stored.attempt)?,
        released: stored.released,
        host: stored.host.into_owned(),
        pid: stored.pid,
        info_time: UnixMillis(number(stored.info_time)?),
    })
}

/// The machine ID that the name of a record's znode is.
pub(super) fn read_machine(name: &str) -> Option<u64> {
    let machine = name.parse().ok().and_then(|machine| within_63_bits(machine).ok())?;
    (machine.to_string() == name).then_some(machine)
}

/// As the other stores have it.
pub(super) fn within_63_bits(number: u64) -> Result<u64, StoreError> {
    match i64::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(StoreError::permanent(format!("{number} has more than 63 bits"))),
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("text and numbers always become JSON")
}

fn read<T: DeserializeOwned>(path: &str, data: &[u8], stat: &Stat) -> Result<T, StoreError> {
    // Ephemeral, or with a time to live, or removed when its last child goes.
    if stat.ephemeral_owner != 0 {
        return Err(foreign(path, "it is not persistent"));
    }
    let damaged = |error: serde_json::Error| foreign(path, error);
    let Schema { schema } = serde_json::from_slice(data).map_err(damaged)?;
    if schema != SCHEMA {
        return Err(StoreError::permanent(format!(
            "the znode {path} has schema {schema}, this build of Vesta knows {SCHEMA}; use the version \
             of Vesta that made it, or another path"
        )));
    }
    serde_json::from_slice(data).map_err(damaged)
}

fn hex(number: u128) -> String {
    format!("{number:032x}")
}

fn read_hex(path: &str, text: &str) -> Result<u128, StoreError> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    number.ok_or_else(|| foreign(path, "32 hexadecimal digits were expected"))
}

#[cfg(test)]
mod tests {
    use vesta_service::IdMeta;

    use super::*;

    const STAT: Stat = Stat {
        czxid: 1,
        mzxid: 1,
        pzxid: 1,
        ctime: 0,
        mtime: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 0,
        num_children: 0,
    };

    /// The lines of the documentation that begin with the path of a znode, and what they show.
    fn documented() -> Vec<(&'static str, &'static str)> {
        let source = include_str!("../zookeeper.rs");
        let shown = source.split("/// ```text\n").nth(1).unwrap().split("/// ```").next().unwrap();
        shown
            .lines()
            .filter_map(|line| line.trim_start_matches("///").trim().split_once(" {"))
            .map(|(path, data)| (path.trim(), data))
            .collect()
    }

    #[test]
    fn znodes_are_as_documented() {
        let uuid = 0x5f0c_7b1e_93a2_4d68_8e17_c2b4_f690_3ad5;
        let made = Namespace { uuid, fingerprint: IdMeta::MAX_PEAK.fingerprint(), floor: 0 };
        let claimed = Record {
            epoch: 3,
            owner: 0x92b1_04c8_d37e_4f15_a6d0_7e38_1b59_c2f4,
            bound: 369_899_123_507_200,
            attempt: 8_203_774_192_230_847_113,
            released: false,
            host: "ids-1".into(),
            pid: 4711,
            info_time: UnixMillis(1_767_225_600_000),
        };
        let text = |data: Vec<u8>| String::from_utf8(data).unwrap()[1..].to_owned();
        let [namespace_line, record_line, alive_line] = documented()[..] else { panic!() };
        assert_eq!(namespace_line, ("/vesta/default", &*text(namespace(&made).unwrap())));
        assert_eq!(record_line, ("/vesta/default/records/7", &*text(record(&claimed).unwrap())));
        assert_eq!(alive_line, ("/vesta/default/alive/7", &*text(alive(&claimed))));
    }

    #[test]
    fn numbers_have_63_bits() {
        let largest = u64::MAX >> 1;
        let record = |number| Record { attempt: number, ..Record::default() };
        let data = super::record(&record(largest)).unwrap();
        assert_eq!(read_record("/r", &data, &STAT).unwrap(), record(largest));
        assert!(super::record(&record(largest + 1)).unwrap_err().is_permanent());

        let data = String::from_utf8(data).unwrap();
        let larger = data.replace(&largest.to_string(), &(largest + 1).to_string());
        let error = read_record("/r", larger.as_bytes(), &STAT).unwrap_err();
        assert!(error.to_string().contains("/r is damaged"), "{error}");
    }

    #[test]
    fn what_no_vesta_wrote_is_refused() {
        let good = String::from_utf8(record(&Record::default()).unwrap()).unwrap();
        let owner = "0".repeat(32);
        for bad in [
            String::new(),
            "7".into(),
            "{}".into(),
            good[..good.len() - 1].into(),
            format!("{good} x"),
            good.replace("\"pid\":0,", ""),
            good.replace("\"pid\":0,", "\"pid\":0,\"ttl\":5,"),
            good.replace("\"pid\":0", "\"pid\":-1"),
            good.replace("\"pid\":0", "\"pid\":4294967296"),
            good.replace(&owner, &owner[1..]),
            good.replace(&owner, &format!("+{}", &owner[1..])),
        ] {
            assert_ne!(bad, good);
            let error = read_record("/r", bad.as_bytes(), &STAT).expect_err(&bad);
            assert!(error.is_permanent() && error.to_string().contains("znode /r is damaged"));
        }

        let newer = good.replace("\"schema\":1", "\"schema\":2,\"more\":true");
        let error = read_record("/r", newer.as_bytes(), &STAT).unwrap_err().to_string();
        assert!(error.contains("schema 2, this build of Vesta knows 1"), "{error}");

        let ephemeral = Stat { ephemeral_owner: 7, ..STAT };
        let error = read_record("/r", good.as_bytes(), &ephemeral).unwrap_err().to_string();
        assert!(error.contains("/r is damaged or not Vesta's (it is not persistent)"), "{error}");
    }

    #[test]
    fn the_name_of_a_record_is_its_machine_id() {
        assert_eq!(read_machine("0"), Some(0));
        assert_eq!(read_machine("9223372036854775807"), Some(u64::MAX >> 1));
        for odd in ["", "07", "+7", "-1", "7 ", "x", "9223372036854775808", "18446744073709551616"]
        {
            assert_eq!(read_machine(odd), None, "{odd}");
        }
    }
}
