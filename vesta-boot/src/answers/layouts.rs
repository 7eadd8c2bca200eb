//! Layouts.

use serde::Serialize;
use utoipa::ToSchema;
use vesta_explain::layouts;
use vesta_intf::{Field, Id, IdMeta};

use super::Row;

/// Definition of a layout, independent of the server that uses it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shape {
    /// The name, or `custom`.
    pub name: &'static str,
    /// Field widths in bits.
    pub bits: Bits,
    /// Field order, most significant first.
    pub order: Vec<&'static str>,
    /// Total number of bits; every ID is below 2^totalBits.
    pub total_bits: u8,
    /// Unit of the time field: `second`, `10 ms`, `millisecond` or `10 µs`.
    pub unit: String,
    /// The unit in microseconds.
    pub unit_micros: u64,
    /// Moment at which the time field is 0.
    pub epoch: String,
    /// The epoch in milliseconds since 1970.
    pub epoch_millis: u64,
    /// Moment at which the layout runs out of IDs.
    pub ends: String,
    /// Number of machine IDs.
    pub machine_ids: u64,
    /// Maximum number of IDs per second and machine ID.
    pub capacity_per_second: u64,
    /// Number of low bits that all IDs of a machine ID share.
    pub same_low_bits: u8,
    /// True if a generator can use a layout of this kind; false if it only explains IDs.
    pub makes_ids: bool,
}

/// Field widths in bits; 0 for a field that the layout lacks.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of an ID")]
pub struct Bits {
    pub version: u8,
    #[serde(rename = "type")]
    pub id_type: u8,
    pub gen_method: u8,
    pub time: u8,
    pub seq: u8,
    pub machine: u8,
}

impl From<&IdMeta> for Bits {
    fn from(meta: &IdMeta) -> Self {
        Self {
            version: meta.bits(Field::Version),
            id_type: meta.bits(Field::Type),
            gen_method: meta.bits(Field::GenMethod),
            time: meta.bits(Field::Time),
            seq: meta.bits(Field::Seq),
            machine: meta.bits(Field::Machine),
        }
    }
}

impl From<&IdMeta> for Shape {
    fn from(meta: &IdMeta) -> Self {
        let fields = meta.fields().into_iter();
        let (unit, epoch) = (meta.spec().unit, meta.spec().epoch);
        Self {
            name: meta.name(),
            bits: meta.into(),
            order: fields
                .filter(|field| meta.bits(*field) > 0)
                .map(Field::name)
                .collect(),
            total_bits: meta.total_bits(),
            unit: unit.to_string(),
            unit_micros: unit.micros(),
            epoch: epoch.to_string(),
            epoch_millis: epoch.0,
            ends: meta.end().to_string(),
            machine_ids: meta.max(Field::Machine).saturating_add(1),
            capacity_per_second: meta.capacity_per_second(),
            same_low_bits: meta.same_low_bits(),
            makes_ids: meta.check_generates().is_ok(),
        }
    }
}

/// The layout of the IDs that this server makes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "name": "max-peak",
    "bits": {"version": 1, "type": 1, "genMethod": 2, "time": 30, "seq": 20, "machine": 10},
    "order": ["version", "type", "genMethod", "time", "seq", "machine"],
    "totalBits": 64, "unit": "second", "unitMicros": 1000000,
    "epoch": "2014-12-31T16:00:00.000Z", "epochMillis": 1420041600000u64,
    "ends": "2049-01-09T05:37:04.000Z", "machineIds": 1024, "capacityPerSecond": 1048576, "sameLowBits": 10,
    "makesIds": true,
    "machine": 7, "genMethod": 2, "type": 0, "version": 0
}))]
pub struct Layout {
    /// The layout itself.
    #[serde(flatten)]
    pub shape: Shape,
    /// The machine ID that this server holds now.
    pub machine: u64,
    /// Value of the genMethod field of its IDs.
    pub gen_method: u64,
    /// Value of the type field of its IDs.
    #[serde(rename = "type")]
    pub id_type: u64,
    /// Value of the version field of its IDs.
    pub version: u64,
}

impl Layout {
    /// Describes a layout and the constant fields of this server's IDs.
    pub fn new(meta: &IdMeta, own: &Id) -> Self {
        let Id {
            machine,
            gen_method,
            id_type,
            version,
            ..
        } = *own;
        Self {
            shape: meta.into(),
            machine,
            gen_method,
            id_type,
            version,
        }
    }
}

impl Row for Shape {
    const COLUMNS: &'static [&'static str] = &[
        "name",
        "total bits",
        "epoch",
        "ends",
        "machine IDs",
        "capacity/s",
        "same low bits",
        "makes IDs",
    ];
}

/// A layout with a name.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NamedLayout {
    /// The layout itself.
    #[serde(flatten)]
    pub shape: Shape,
    /// One-line description.
    pub about: &'static str,
}

impl From<&IdMeta> for NamedLayout {
    fn from(meta: &IdMeta) -> Self {
        Self {
            shape: meta.into(),
            about: layouts::about(meta),
        }
    }
}

/// A known layout for explaining IDs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "sonyflake",
    "bits": {"version": 0, "type": 0, "genMethod": 0, "time": 39, "seq": 8, "machine": 16},
    "order": ["time", "seq", "machine"], "totalBits": 63, "unit": "10 ms", "unitMicros": 10000,
    "epoch": "2014-09-01T00:00:00.000Z", "epochMillis": 1409529600000u64,
    "ends": "2188-11-16T03:28:58.880Z", "machineIds": 65536, "capacityPerSecond": 25600, "sameLowBits": 16,
    "makesIds": true, "about": "Sonyflake 1 with its default start time", "own": false
}))]
pub struct KnownLayout {
    /// The layout with its name.
    #[serde(flatten)]
    pub layout: NamedLayout,
    /// True if this server generates its IDs in this layout.
    pub own: bool,
}

impl KnownLayout {
    /// Describes a layout and marks the server's own.
    pub fn new(meta: &IdMeta, own: &IdMeta) -> Self {
        Self {
            layout: meta.into(),
            own: meta.name() == own.name(),
        }
    }
}

/// The known layouts for explaining IDs.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KnownLayouts {
    /// The layouts.
    pub layouts: Vec<KnownLayout>,
}
