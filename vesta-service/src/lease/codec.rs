//! Entries as canonical JSON text: exactly one text for each value, readable by people too.
//!
//! Numbers of 64 bits are written as text, because many JSON readers have only 53 bits. A text that
//! encodes the same value differently is refused, because a compare-and-set compares texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use vesta_intf::UnixMillis;

use super::{Doubt, Namespace, Record, Secret, Standby};

/// Schema version of all texts.
pub const SCHEMA: u64 = 1;

/// Value that a store keeps as text.
pub trait Entry: PartialEq + Sized {
    /// The only text of this value.
    fn encode(&self) -> String;

    /// Reads the value from the fields of a text.
    ///
    /// # Errors
    /// A sentence about what is wrong with them.
    fn read(fields: &Fields<'_>) -> Result<Self, String>;

    /// Parses a text.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    fn decode(text: &str) -> Result<Self, String> {
        let entry = Self::read(&Fields::parse(text)?)?;
        let canonical = entry.encode();
        if text != canonical {
            return Err(format!("it should be written as {canonical}"));
        }
        Ok(entry)
    }
}

/// Marks: the machine IDs that were ever created, with the birth of each; one bucket of 64.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    /// Uuid of the namespace.
    pub(crate) namespace: u128,
    /// Birth of each record that was created.
    pub(crate) births: BTreeMap<u64, u64>,
}

/// State of a record, judged by its mark.
#[derive(Debug)]
pub(super) enum Standing<'a> {
    /// The record was never created.
    Absent,
    /// The record was created, but its creator stopped before marking it.
    Unmarked(&'a Record),
    /// The record is the marked one.
    Marked(&'a Record),
    /// The record was deleted, or replaced by one that is not the marked one (SAFETY.md, rule 5).
    Lost,
}

impl<'a> Standing<'a> {
    /// State of a machine ID's record in the namespace with this uuid.
    pub(super) fn of(
        namespace: u128,
        machine: u64,
        record: Option<&'a Record>,
        marks: Option<&Marks>,
    ) -> Self {
        let owners = [
            record.map(|record| record.namespace),
            marks.map(|marks| marks.namespace),
        ];
        if owners.into_iter().flatten().any(|owner| owner != namespace) {
            return Self::Lost;
        }
        match (record, marks.and_then(|marks| marks.births.get(&machine))) {
            (None, None) => Self::Absent,
            (Some(record), None) => Self::Unmarked(record),
            (Some(record), Some(birth)) if record.birth == *birth => Self::Marked(record),
            _ => Self::Lost,
        }
    }
}

impl Entry for Record {
    fn encode(&self) -> String {
        let Self {
            namespace,
            birth,
            epoch,
            owner,
            from,
            bound,
            attempt,
            released,
            ..
        } = self;
        let Self {
            host,
            pid,
            version,
            claimed,
            info_time,
            standby,
            ..
        } = self;
        let standby = standby
            .as_ref()
            .map_or(String::new(), |Standby { window, base }| {
                let window = window.as_millis();
                format!(r#","standby":{{"window":"{window}","base":"{base}"}}"#)
            });
        let (host, version) = (Value::from(host.as_str()), Value::from(version.as_str()));
        format!(
            r#"{{"schema":{SCHEMA},"namespace":"{namespace:032x}","birth":"{birth:016x}","epoch":"{epoch}","owner":"{owner:032x}","from":"{from}","bound":"{bound}","attempt":"{attempt:016x}","released":{released},"host":{host},"pid":{pid},"version":{version},"claimed":"{}","time":"{}"{standby}}}"#,
            claimed.0, info_time.0
        )
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let standby = |value: &Value| {
            let number = |name| value.get(name)?.as_str()?.parse().ok();
            let window = Duration::from_millis(number("window")?);
            Some(Standby {
                window,
                base: number("base")?,
            })
        };
        Ok(Self {
            namespace: fields.hex("namespace")?,
            birth: fields.hex_64("birth")?,
            epoch: fields.number("epoch")?,
            owner: fields.hex("owner")?,
            from: fields.number("from")?,
            bound: fields.number("bound")?,
            attempt: fields.hex_64("attempt")?,
            released: fields.field("released", Value::as_bool)?,
            host: fields.text("host")?.to_owned(),
            pid: fields.field("pid", |pid| pid.as_u64()?.try_into().ok())?,
            version: fields.text("version")?.to_owned(),
            claimed: UnixMillis(fields.number("claimed")?),
            info_time: UnixMillis(fields.number("time")?),
            secret: Secret::default(),
            standby: match fields.0.contains_key("standby") {
                true => Some(fields.field("standby", standby)?),
                false => None,
            },
        })
    }
}

impl Entry for Namespace {
    fn encode(&self) -> String {
        let Self {
            uuid,
            fingerprint,
            floor,
            window,
            doubt,
            writer,
        } = self;
        let writer = Value::from(writer.as_deref());
        let fingerprint = Value::from(fingerprint.as_str());
        let doubt = doubt.as_ref().map_or(
            "null".into(),
            |Doubt {
                 since,
                 reach,
                 window,
                 took_over,
                 why,
             }| {
                let (window, why) = (window.as_millis(), Value::from(why.as_str()));
                let (since, reach) = (since.0, reach.0);
                format!(
                    r#"{{"since":"{since}","reach":"{reach}","window":"{window}","tookOver":{took_over},"why":{why}}}"#
                )
            },
        );
        let window = window.as_millis();
        format!(
            r#"{{"schema":{SCHEMA},"uuid":"{uuid:032x}","fingerprint":{fingerprint},"floor":"{floor}","window":"{window}","doubt":{doubt},"writer":{writer}}}"#
        )
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let doubt = |value: &Value| {
            let millis = |name| value.get(name)?.as_str()?.parse().ok();
            let [since, reach] = [millis("since")?, millis("reach")?].map(UnixMillis);
            let window = Duration::from_millis(millis("window")?);
            Some(Doubt {
                since,
                reach,
                window,
                took_over: value.get("tookOver")?.as_bool()?,
                why: value.get("why")?.as_str()?.to_owned(),
            })
        };
        Ok(Self {
            uuid: fields.hex("uuid")?,
            fingerprint: fields.text("fingerprint")?.to_owned(),
            floor: fields.number("floor")?,
            window: Duration::from_millis(fields.number("window")?),
            doubt: fields.optional("doubt", doubt)?,
            writer: fields.optional("writer", |writer| writer.as_str().map(str::to_owned))?,
        })
    }
}

impl Entry for Marks {
    fn encode(&self) -> String {
        let Self { namespace, births } = self;
        let mut text = format!(r#"{{"schema":{SCHEMA},"namespace":"{namespace:032x}","births":{{"#);
        for (i, (machine, birth)) in births.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(text, r#"{comma}"{machine}":"{birth:016x}""#); // writing to a String cannot fail
        }
        text + "}}"
    }

    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let birth = |(machine, birth): (&String, &Value)| {
            Some((
                machine.parse().ok()?,
                u64::from_str_radix(birth.as_str()?, 16).ok()?,
            ))
        };
        let births = |value: &Value| value.as_object()?.iter().map(birth).collect();
        Ok(Self {
            namespace: fields.hex("namespace")?,
            births: fields.field("births", births)?,
        })
    }
}

/// Fields of a JSON object of this schema.
#[derive(Debug)]
pub struct Fields<'a>(BTreeMap<&'a str, Value>);

impl<'t> Fields<'t> {
    /// Parses a text.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let fields: BTreeMap<_, _> =
            serde_json::from_str(text).map_err(|e| format!("it is not a JSON object: {e}"))?;
        match fields.get("schema").and_then(Value::as_u64) {
            Some(SCHEMA) => Ok(Self(fields)),
            Some(other) => Err(format!(
                "its schema is {other}; this version of Vesta knows schema {SCHEMA}"
            )),
            None => Err("it has no schema number".into()),
        }
    }

    /// A field, as `read` understands it.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn field<'a, T>(
        &'a self,
        name: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, String> {
        self.0
            .get(name)
            .and_then(read)
            .ok_or_else(|| format!("its `{name}` is missing or malformed"))
    }

    /// A text.
    ///
    /// # Errors
    /// As for [`field`](Self::field).
    pub fn text(&self, name: &str) -> Result<&str, String> {
        self.field(name, Value::as_str)
    }

    /// A number in a field that earlier versions do not write; `None` if it is missing.
    ///
    /// # Errors
    /// As for [`field`](Self::field).
    pub fn if_present<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let is_there = self.0.contains_key(name);
        is_there.then(|| self.number(name)).transpose()
    }

    /// `None` if the field is null.
    ///
    /// # Errors
    /// As for [`field`](Self::field).
    pub fn optional<'a, T>(
        &'a self,
        name: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.field(name, |value| {
            if value.is_null() {
                Some(None)
            } else {
                read(value).map(Some)
            }
        })
    }

    /// A number, written as text.
    ///
    /// # Errors
    /// As for [`field`](Self::field).
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        self.field(name, |value| value.as_str()?.parse().ok())
    }

    fn hex(&self, name: &str) -> Result<u128, String> {
        self.field(name, |value| u128::from_str_radix(value.as_str()?, 16).ok())
    }

    /// A number in hexadecimal digits.
    ///
    /// # Errors
    /// As for [`field`](Self::field).
    pub fn hex_64(&self, name: &str) -> Result<u64, String> {
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
            from: 1 << 60,
            bound: 1 << 61,
            attempt: 42,
            released: true,
            host: "h'ö\"s\\t".into(),
            pid: 4711,
            version: "0.1.0".into(),
            claimed: UnixMillis(1_600_000_000_000),
            info_time: UnixMillis(1_700_000_000_000),
            standby: None,
            secret: Secret::default(),
        }
    }

    #[test]
    fn record_has_this_canonical_text() {
        let text = r#"{"schema":1,"namespace":"00000000000000000000000000000abc","birth":"0000000000000007","epoch":"3","owner":"fffffffffffffffffffffffffffffffe","from":"1152921504606846976","bound":"2305843009213693952","attempt":"000000000000002a","released":true,"host":"h'ö\"s\\t","pid":4711,"version":"0.1.0","claimed":"1600000000000","time":"1700000000000"}"#;
        assert_eq!(record().encode(), text);
        assert_eq!(Record::decode(text), Ok(record()));
        let window = Duration::from_secs(2);
        let standby = Some(Standby { window, base: 7 });
        let ordered = Record {
            standby,
            ..record()
        };
        let text = text.replace('}', r#","standby":{"window":"2000","base":"7"}}"#);
        assert_eq!(ordered.encode(), text);
        assert_eq!(Record::decode(&text), Ok(ordered));
        let refusal = Record::decode(&text.replace("2000", "x")).unwrap_err();
        assert!(
            refusal.contains("its `standby` is missing or malformed"),
            "{refusal}"
        );
    }

    proptest! {
        #[test]
        fn every_record_round_trips(
            (namespace, birth, epoch, owner, bound) in any::<(u128, u64, u64, u128, u64)>(),
            (attempt, released, host, pid, time) in any::<(u64, bool, String, u32, u64)>(),
            (from, version, claimed) in any::<(u64, String, u64)>(),
            standby in any::<Option<(u64, u64)>>(),
        ) {
            let standby = standby.map(|(window, base)| Standby { window: Duration::from_millis(window), base });
            let (info_time, claimed) = (UnixMillis(time), UnixMillis(claimed));
            let record = Record {
                namespace, birth, epoch, owner, from, bound, attempt, released, host, pid, version,
                claimed, info_time, standby, secret: Secret::default(),
            };
            prop_assert_eq!(Record::decode(&record.encode()), Ok(record));
        }

        #[test]
        fn every_namespace_and_bucket_round_trips(
            (uuid, fingerprint, floor, window) in any::<(u128, String, u64, u64)>(),
            (doubt, writer) in any::<(Option<(u64, u64, u64, bool, String)>, Option<String>)>(),
            births in proptest::collection::btree_map(any::<u64>(), any::<u64>(), 0..64),
        ) {
            let doubt = doubt.map(|(since, reach, window, took_over, why)| {
                let [since, reach] = [since, reach].map(UnixMillis);
                Doubt { since, reach, window: Duration::from_millis(window), took_over, why }
            });
            let window = Duration::from_millis(window);
            let namespace = Namespace { uuid, fingerprint, floor, window, doubt, writer };
            prop_assert_eq!(Namespace::decode(&namespace.encode()), Ok(namespace));
            let marks = Marks { namespace: uuid, births };
            prop_assert_eq!(Marks::decode(&marks.encode()), Ok(marks));
        }

        /// Any text is read as itself or refused, never read as another value.
        #[test]
        fn any_text_is_read_as_itself_or_refused(text in r#"\{"schema":1,.*\}|.*"#) {
            if let Ok(record) = Record::decode(&text) {
                prop_assert_eq!(record.encode(), text);
            }
        }
    }

    #[test]
    fn non_canonical_entry_is_refused_with_the_canonical_text() {
        let text = record().encode();
        let spaced = text.replace(':', ": ");
        let refusal = Record::decode(&spaced).unwrap_err();
        assert!(refusal.contains(&text), "{refusal}");
        for (damaged, why) in [
            (
                text.replace("\"schema\":1", "\"schema\":2"),
                "its schema is 2",
            ),
            (text.replace("\"schema\":1,", ""), "no schema number"),
            (
                text.replace("\"pid\":4711", "\"pid\":-1"),
                "its `pid` is missing or malformed",
            ),
            (
                text.replace("\"3\"", "\"x\""),
                "its `epoch` is missing or malformed",
            ),
            (text.replace("\"3\"", "\"03\""), "it should be written as"),
            (text[..70].into(), "not a JSON object"),
            (String::new(), "not a JSON object"),
        ] {
            let refusal = Record::decode(&damaged).unwrap_err();
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
