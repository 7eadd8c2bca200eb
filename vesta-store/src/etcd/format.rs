//! What stands in the value of a key, as documented at [`EtcdStore`](super::EtcdStore).

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vesta_service::{Namespace, Record, StoreError, UnixMillis};

use super::pb::KeyValue;

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

pub(super) fn read_namespace(kv: &KeyValue) -> Result<Namespace, StoreError> {
    let stored: StoredNamespace<'_> = read(kv)?;
    Ok(Namespace {
        uuid: read_hex(kv, &stored.uuid)?,
        fingerprint: stored.fingerprint.into_owned(),
        floor: read_number(kv, stored.floor)?,
    })
}

pub(super) fn read_record(kv: &KeyValue) -> Result<Record, StoreError> {
    let stored: StoredRecord<'_> = read(kv)?;
    Ok(Record {
        epoch: read_number(kv, stored.epoch)?,
        owner: read_hex(kv, &stored.owner)?,
        bound: read_number(kv, stored.bound)?,
        attempt: read_number(kv, stored.attempt)?,
        released: stored.released,
        host: stored.host.into_owned(),
        pid: stored.pid,
        info_time: UnixMillis(read_number(kv, stored.info_time)?),
    })
}

/// The last part of the key of a record.
pub(super) fn machine(machine: u64) -> Result<String, StoreError> {
    Ok(format!("{:019}", within_63_bits(machine)?))
}

/// The machine ID that the last part of the key of a record is.
pub(super) fn read_machine(kv: &KeyValue, name: &[u8]) -> Result<u64, StoreError> {
    let number = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    let same = |number: &u64| machine(*number).is_ok_and(|made| made.as_bytes() == name);
    number.filter(same).ok_or_else(|| foreign(kv, "it does not end with a machine ID"))
}

/// A value is not what Vesta makes of it.
pub(super) fn foreign(kv: &KeyValue, finding: impl Display) -> StoreError {
    StoreError::permanent(format!(
        "the key {} is damaged or not Vesta's ({finding}); restore it, or use another prefix only if \
         no process made IDs with this one in the last minute",
        shown(kv)
    ))
}

/// As the other stores have it.
pub(super) fn within_63_bits(number: u64) -> Result<u64, StoreError> {
    match i64::try_from(number) {
        Ok(_) => Ok(number),
        Err(_) => Err(StoreError::permanent(format!("{number} has more than 63 bits"))),
    }
}

fn shown(kv: &KeyValue) -> Cow<'_, str> {
    String::from_utf8_lossy(&kv.key)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("text and numbers always become JSON")
}

fn read<T: DeserializeOwned>(kv: &KeyValue) -> Result<T, StoreError> {
    if kv.lease != 0 {
        return Err(StoreError::permanent(format!(
            "the key {} has a lease and would be deleted with it; put it again without one",
            shown(kv)
        )));
    }
    let damaged = |error: serde_json::Error| foreign(kv, error);
    let Schema { schema } = serde_json::from_slice(&kv.value).map_err(damaged)?;
    if schema != SCHEMA {
        return Err(StoreError::permanent(format!(
            "the key {} has schema {schema}, this build of Vesta knows {SCHEMA}; use the version of \
             Vesta that made it",
            shown(kv)
        )));
    }
    serde_json::from_slice(&kv.value).map_err(damaged)
}

fn read_number(kv: &KeyValue, number: u64) -> Result<u64, StoreError> {
    within_63_bits(number).map_err(|error| foreign(kv, error))
}

fn hex(number: u128) -> String {
    format!("{number:032x}")
}

fn read_hex(kv: &KeyValue, text: &str) -> Result<u128, StoreError> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    number.ok_or_else(|| foreign(kv, "32 hexadecimal digits were expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_value(value: impl Into<Vec<u8>>) -> KeyValue {
        let (key, value) = (b"vesta/x/record/7".to_vec(), value.into());
        KeyValue { key, mod_revision: 9, value, lease: 0 }
    }

    fn text(value: Result<Vec<u8>, StoreError>) -> String {
        String::from_utf8(value.unwrap()).unwrap()
    }

    #[test]
    fn values_are_as_documented() {
        let source = include_str!("../etcd.rs");
        let shown = source.split("/// ```text\n").nth(1).unwrap().split("/// ```").next().unwrap();
        let lines = shown.lines().map(|line| line.trim_start_matches("///").trim());
        let documented = lines.collect::<String>();

        let uuid = 0x5f0c_7b1e_93a2_4d68_8e17_c2b4_f690_3ad5;
        let made = Namespace { uuid, fingerprint: "1-1-2-30-20-10".into(), floor: 0 };
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
        let (namespace, record) = (text(namespace(&made)), text(record(&claimed)));
        assert!(documented.contains(&format!("vesta/default/meta{namespace}")), "{namespace}");
        let key = format!("vesta/default/record/{}", machine(7).unwrap());
        assert!(documented.ends_with(&format!("{key}{record}")), "{key} {record}");
        assert_eq!(read_namespace(&key_value(namespace)).unwrap(), made);
        assert_eq!(read_record(&key_value(record)).unwrap(), claimed);
    }

    #[test]
    fn numbers_have_63_bits() {
        let largest = u64::MAX >> 1;
        let with = |attempt| Record { attempt, ..Record::default() };
        let value = text(record(&with(largest)));
        assert_eq!(read_record(&key_value(&*value)).unwrap(), with(largest));
        assert!(record(&with(largest + 1)).unwrap_err().is_permanent());
        assert!(machine(largest).is_ok() && machine(largest + 1).unwrap_err().is_permanent());

        let larger = value.replace(&largest.to_string(), &(largest + 1).to_string());
        let error = read_record(&key_value(larger)).unwrap_err();
        assert!(error.to_string().contains("the key vesta/x/record/7 is damaged"), "{error}");
    }

    #[test]
    fn what_no_vesta_wrote_is_refused() {
        let good = text(record(&Record::default()));
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
            good.replace("\"bound\":0", "\"bound\":1e3"),
            good.replace(&owner, &owner[1..]),
            good.replace(&owner, &format!("+{}", &owner[1..])),
        ] {
            assert_ne!(bad, good);
            let error = read_record(&key_value(&*bad)).expect_err(&bad);
            assert!(error.is_permanent(), "{bad}");
            assert!(error.to_string().contains("the key vesta/x/record/7 is damaged"), "{error}");
        }

        let newer = good.replace("\"schema\":1", "\"schema\":2,\"more\":true");
        let error = read_record(&key_value(newer)).unwrap_err().to_string();
        assert!(error.contains("schema 2, this build of Vesta knows 1"), "{error}");

        let leased = KeyValue { lease: 7, ..key_value(good) };
        let error = read_record(&leased).unwrap_err();
        assert!(error.is_permanent() && error.to_string().contains("has a lease"), "{error}");
    }

    #[test]
    fn the_last_part_of_a_key_is_the_machine_id() {
        let read = |name: &str| read_machine(&key_value(""), name.as_bytes()).ok();
        for number in [0, 7, 1023, u64::MAX >> 1] {
            let name = machine(number).unwrap();
            assert_eq!((name.len(), read(&name)), (19, Some(number)));
        }
        for odd in ["", "7", "000000000000000007", "00000000000000000007", "+000000000000000007"] {
            assert_eq!(read(odd), None, "{odd}");
        }
        assert_eq!(read("9223372036854775808"), None);
    }
}
