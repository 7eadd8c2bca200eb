//! IDs in JSON and other formats: as text, or as a number on request.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::VestaId;

/// A string of decimal digits; in formats that are not human-readable, a `u64`.
impl Serialize for VestaId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => number::serialize(self, serializer),
        }
    }
}

/// Accepts what serialization produces. A number is refused where a string is expected: its sender
/// may have rounded it.
impl<'de> Deserialize<'de> for VestaId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(Digits),
            false => number::deserialize(deserializer),
        }
    }
}

struct Digits;

impl Visitor<'_> for Digits {
    type Value = VestaId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID as a string of decimal digits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<VestaId, E> {
        text.parse().map_err(E::custom)
    }
}

/// A [`VestaId`] as a number, for fields with `#[serde(with = "vesta_intf::id_as_number")]`. Programs that
/// keep numbers as doubles, such as JavaScript, round IDs above 2^53.
pub mod number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::VestaId;

    /// Writes the ID as a `u64`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(id: &VestaId, serializer: S) -> Result<S::Ok, S::Error> {
        u64::from(*id).serialize(serializer)
    }

    /// Reads the ID from a `u64`.
    ///
    /// # Errors
    /// Those of the deserializer; a negative number is an error too.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VestaId, D::Error> {
        u64::deserialize(deserializer).map(VestaId::from)
    }
}
