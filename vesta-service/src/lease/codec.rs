//! Entries as canonical JSON text: one text for one value, which a person can read too.
//!
//! Numbers of 64 bits are text, since many readers of JSON have 53. An entry that says the same in
//! other words is refused: a compare-and-set compares texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use vesta_intf::UnixMillis;

use super::{Namespace, Record};

/// The version of all texts.
pub(crate) const SCHEMA: u64 = 1;

/// Machine IDs that were ever created, with the birth of each: one bucket of 64.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    /// The uuid of the namespace.
    pub(crate) namespace: u128,
    /// The birth of each record that was created.
    pub(crate) births: BTreeMap<u64, u64>,
}

/// The text of a record.
pub(crate) fn encode_record(record: &Record) -> String {
    let Record { namespace, birth, epoch, owner, bound, attempt, released, host, pid, info_time } =
        record;
    let host = Value::from(host.as_str());
    format!(
        r#"{{"schema":{SCHEMA},"namespace":"{namespace:032x}","birth":"{birth:016x}","epoch":"{epoch}","owner":"{owner:032x}","bound":"{bound}","attempt":"{attempt:016x}","released":{released},"host":{host},"pid":{pid},"time":"{}"}}"#,
        info_time.0
    )
}

/// The record of a text.
///
/// # Errors
/// A sentence about what is wrong with it.
pub(crate) fn decode_record(text: &str) -> Result<Record, String> {
    let entry = Entry::parse(text)?;
    let record = Record {
        namespace: entry.hex("namespace")?,
        birth: entry.hex_64("birth")?,
        epoch: entry.number("epoch")?,
        owner: entry.hex("owner")?,
        bound: entry.number("bound")?,
        attempt: entry.hex_64("attempt")?,
        released: entry.field("released", Value::as_bool)?,
        host: entry.text("host")?.to_owned(),
        pid: entry.field("pid", |pid| pid.as_u64()?.try_into().ok())?,
        info_time: UnixMillis(entry.number("time")?),
    };
    canonical(text, &encode_record(&record)).map(|()| record)
}

/// The text of a namespace.
pub(crate) fn encode_namespace(namespace: &Namespace) -> String {
    let Namespace { uuid, fingerprint, floor } = namespace;
    let fingerprint = Value::from(fingerprint.as_str());
    format!(
        r#"{{"schema":{SCHEMA},"uuid":"{uuid:032x}","fingerprint":{fingerprint},"floor":"{floor}"}}"#
    )
}

/// The namespace of a text.
///
/// # Errors
/// A sentence about what is wrong with it.
pub(crate) fn decode_namespace(text: &str) -> Result<Namespace, String> {
    let entry = Entry::parse(text)?;
    let namespace = Namespace {
        uuid: entry.hex("uuid")?,
        fingerprint: entry.text("fingerprint")?.to_owned(),
        floor: entry.number("floor")?,
    };
    canonical(text, &encode_namespace(&namespace)).map(|()| namespace)
}

/// The text of a bucket of marks.
pub(crate) fn encode_marks(marks: &Marks) -> String {
    let Marks { namespace, births } = marks;
    let mut text = format!(r#"{{"schema":{SCHEMA},"namespace":"{namespace:032x}","births":{{"#);
    for (i, (machine, birth)) in births.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(text, r#"{comma}"{machine}":"{birth:016x}""#); // a String takes everything
    }
    text + "}}"
}

/// The marks of a text.
///
/// # Errors
/// A sentence about what is wrong with it.
pub(crate) fn decode_marks(text: &str) -> Result<Marks, String> {
    let entry = Entry::parse(text)?;
    let births = entry.field("births", Value::as_object)?;
    let birth = |(machine, birth): (&String, &Value)| {
        let birth = birth.as_str().and_then(|birth| u64::from_str_radix(birth, 16).ok());
        Some((machine.parse().ok()?, birth?))
    };
    let births =
        births.iter().map(birth).collect::<Option<_>>().ok_or("its `births` make no sense")?;
    let marks = Marks { namespace: entry.hex("namespace")?, births };
    canonical(text, &encode_marks(&marks)).map(|()| marks)
}

pub(crate) fn canonical(text: &str, canonical: &str) -> Result<(), String> {
    if text == canonical {
        return Ok(());
    }
    Err(format!("it should be written as {canonical}"))
}

/// A JSON object of this schema.
pub(crate) struct Entry(Value);

impl Entry {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        match value.get("schema").and_then(Value::as_u64) {
            Some(SCHEMA) => Ok(Self(value)),
            Some(other) => {
                Err(format!("its schema is {other}; this version of Vesta knows schema {SCHEMA}"))
            }
            None => Err("it has no schema number".into()),
        }
    }

    pub(crate) fn field<'a, T>(
        &'a self,
        name: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, String> {
        self.0.get(name).and_then(read).ok_or_else(|| format!("its `{name}` makes no sense"))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        self.field(name, Value::as_str)
    }

    /// `None` if the field is null.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<&str>, String> {
        if self.field(name, Some)?.is_null() { Ok(None) } else { self.text(name).map(Some) }
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        self.field(name, |value| value.as_str()?.parse().ok())
    }

    fn hex(&self, name: &str) -> Result<u128, String> {
        self.field(name, |value| u128::from_str_radix(value.as_str()?, 16).ok())
    }

    pub(crate) fn hex_64(&self, name: &str) -> Result<u64, String> {
        self.field(name, |value| u64::from_str_radix(value.as_str()?, 16).ok())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> Record {
        Record {
            namespace: 0xabc,
            birth: 7,
            epoch: 3,
            owner: u128::MAX - 1,
            bound: 1 << 61,
            attempt: 42,
            released: true,
            host: "h'ö\"s\\t".into(),
            pid: 4711,
            info_time: UnixMillis(1_700_000_000_000),
        }
    }

    #[test]
    fn a_record_reads_like_this() {
        let text = r#"{"schema":1,"namespace":"00000000000000000000000000000abc","birth":"0000000000000007","epoch":"3","owner":"fffffffffffffffffffffffffffffffe","bound":"2305843009213693952","attempt":"000000000000002a","released":true,"host":"h'ö\"s\\t","pid":4711,"time":"1700000000000"}"#;
        assert_eq!(encode_record(&record()), text);
        assert_eq!(decode_record(text), Ok(record()));
    }

    proptest! {
        #[test]
        fn every_record_comes_back(
            (namespace, birth, epoch, owner, bound) in any::<(u128, u64, u64, u128, u64)>(),
            (attempt, released, host, pid, time) in any::<(u64, bool, String, u32, u64)>(),
        ) {
            let info_time = UnixMillis(time);
            let record = Record {
                namespace, birth, epoch, owner, bound, attempt, released, host, pid, info_time,
            };
            prop_assert_eq!(decode_record(&encode_record(&record)), Ok(record));
        }

        #[test]
        fn every_namespace_and_every_bucket_comes_back(
            (uuid, fingerprint, floor) in any::<(u128, String, u64)>(),
            births in proptest::collection::btree_map(any::<u64>(), any::<u64>(), 0..64),
        ) {
            let namespace = Namespace { uuid, fingerprint, floor };
            prop_assert_eq!(decode_namespace(&encode_namespace(&namespace)), Ok(namespace));
            let marks = Marks { namespace: uuid, births };
            prop_assert_eq!(decode_marks(&encode_marks(&marks)), Ok(marks));
        }

        /// Whatever stands there is taken as it is or refused, and never understood as something else.
        #[test]
        fn any_text_is_read_as_itself_or_refused(text in r#"\{"schema":1,.*\}|.*"#) {
            if let Ok(record) = decode_record(&text) {
                prop_assert_eq!(encode_record(&record), text);
            }
        }
    }

    #[test]
    fn an_entry_of_other_words_is_refused_with_the_right_ones() {
        let text = encode_record(&record());
        let spaced = text.replace(':', ": ");
        let refusal = decode_record(&spaced).unwrap_err();
        assert!(refusal.contains(&text), "{refusal}");
        for (damaged, why) in [
            (text.replace("\"schema\":1", "\"schema\":2"), "its schema is 2"),
            (text.replace("\"schema\":1,", ""), "no schema number"),
            (text.replace("\"pid\":4711", "\"pid\":-1"), "its `pid` makes no sense"),
            (text.replace("\"3\"", "\"x\""), "its `epoch` makes no sense"),
            (text.replace("\"3\"", "\"03\""), "it should be written as"),
            (text[..70].into(), "not JSON"),
            (String::new(), "not JSON"),
        ] {
            let refusal = decode_record(&damaged).unwrap_err();
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
