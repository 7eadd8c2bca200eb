//! What goes over the wire as JSON. IDs are strings: JavaScript and many JSON parsers read numbers
//! as doubles, which lose the lowest bits above 2^53.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use vesta_intf::{Field, Id, IdMeta, TimeUnit};

/// An ID as a JSON string of decimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(
    value_type = String,
    pattern = "^[0-9]{1,20}$",
    examples("2407837855670862845"),
    description = "A 64-bit ID in decimal digits. A string, because JavaScript rounds numbers above 2^53."
)]
pub struct IdText(pub u64);

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(itoa::Buffer::new().format(self.0))
    }
}

/// One ID.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"id": "2407837855670862845"}))]
pub struct OneId {
    /// The ID.
    pub id: IdText,
}

/// Several IDs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"ids": ["2407837855670862845", "2407837855670863869"]}))]
pub struct ManyIds {
    /// The IDs, strictly ascending.
    pub ids: Vec<IdText>,
}

/// The fields of an ID as numbers, in the key order of the Java Vesta.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"genMethod": 2, "machine": 1022, "seq": 0, "time": 12758739, "type": 0, "version": 0}))]
pub struct Fields {
    /// How it was made: 0 embedded, 1 central server, 2 REST, 3 reserved.
    pub gen_method: u64,
    /// The machine ID that made it.
    pub machine: u64,
    /// Its place inside the tick.
    pub seq: u64,
    /// Ticks since the layout's epoch, in the layout's unit.
    pub time: u64,
    /// 0 max-peak, 1 min-granularity.
    #[serde(rename = "type")]
    pub id_type: u64,
    /// The version bit; 1 makes the ID negative as a signed number.
    pub version: u64,
}

impl From<Id> for Fields {
    fn from(id: Id) -> Self {
        let Id { gen_method, machine, seq, time, id_type, version } = id;
        Self { gen_method, machine, seq, time, id_type, version }
    }
}

/// An ID explained.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "2407837855670862845", "layout": "max-peak", "moment": "2018-01-04T02:08:23.000Z",
    "genMethod": 2, "machine": 1021, "seq": 0, "time": 94990103, "type": 0, "version": 0
}))]
pub struct Explained {
    /// The ID.
    pub id: IdText,
    /// The layout that explains it: of Vesta's two, the one its type bit names.
    pub layout: &'static str,
    /// The moment its time field means: the beginning of its second or millisecond, RFC 3339, UTC.
    pub moment: String,
    /// Its fields; one that the layout does not have is 0.
    #[serde(flatten)]
    pub fields: Fields,
}

/// The parts of an ID to make.
#[derive(Debug, ToSchema)]
#[schema(
    rename_all = "camelCase",
    example = json!({"time": 94990103, "seq": 0, "machine": 1021, "genMethod": 2, "type": 0, "version": 0})
)]
#[allow(dead_code, reason = "describes the body; it is read field by field, for the errors' sake")]
pub struct Parts {
    /// Ticks since the layout's epoch, in the layout's unit.
    pub time: u64,
    /// The place inside the tick.
    pub seq: u64,
    /// The machine ID; left out: the server's own.
    pub machine: Option<u64>,
    /// 0 to 3; left out: the server's own.
    pub gen_method: Option<u64>,
    /// 0 max-peak, 1 min-granularity; left out: the server's own.
    #[schema(rename = "type")]
    pub id_type: Option<u64>,
    /// 0 or 1; left out: the server's own.
    pub version: Option<u64>,
}

/// The widths of the fields in bits; 0 for one that the layout does not have.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "named after the fields of an ID")]
pub struct Widths {
    pub version: u8,
    #[serde(rename = "type")]
    pub id_type: u8,
    pub gen_method: u8,
    pub time: u8,
    pub seq: u8,
    pub machine: u8,
}

/// The layout of the IDs that this server makes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "name": "max-peak",
    "bits": {"version": 1, "type": 1, "genMethod": 2, "time": 30, "seq": 20, "machine": 10},
    "order": ["version", "type", "genMethod", "time", "seq", "machine"],
    "totalBits": 64, "unit": "second", "unitMillis": 1000,
    "epoch": "2014-12-31T16:00:00.000Z", "epochMillis": 1420041600000u64,
    "ends": "2049-01-09T05:37:04.000Z", "capacityPerSecond": 1048576,
    "machine": 7, "genMethod": 2, "type": 0, "version": 0
}))]
pub struct Layout {
    /// `max-peak`, `min-granularity`, `snowflake`, `uid`, `js-safe` or `custom`.
    pub name: &'static str,
    /// The widths of the fields.
    pub bits: Widths,
    /// The order of the fields, most significant first.
    pub order: Vec<&'static str>,
    /// All bits together; an ID is below 2^totalBits.
    pub total_bits: u8,
    /// What one step of the time field is: `second`, `10 ms` or `millisecond`.
    #[schema(value_type = String)]
    pub unit: String,
    /// The same in milliseconds.
    pub unit_millis: u64,
    /// The moment at which the time field is 0.
    pub epoch: String,
    /// The same in milliseconds since 1970.
    pub epoch_millis: u64,
    /// The moment from which on the layout has no more IDs.
    pub ends: String,
    /// The most IDs of one machine ID in a second.
    pub capacity_per_second: u64,
    /// The machine ID that this server holds now.
    pub machine: u64,
    /// What stands in the genMethod field of its IDs.
    pub gen_method: u64,
    /// What stands in the type field of its IDs.
    #[serde(rename = "type")]
    pub id_type: u64,
    /// What stands in the version field of its IDs.
    pub version: u64,
}

impl Layout {
    /// Describes a layout, and what this server's own IDs carry.
    pub fn new(meta: &IdMeta, own: &Id) -> Self {
        let bits = Widths {
            version: meta.bits(Field::Version),
            id_type: meta.bits(Field::Type),
            gen_method: meta.bits(Field::GenMethod),
            time: meta.bits(Field::Time),
            seq: meta.bits(Field::Seq),
            machine: meta.bits(Field::Machine),
        };
        let order = meta.fields().into_iter().filter(|field| meta.bits(*field) > 0);
        let unit: TimeUnit = meta.spec().unit;
        Self {
            name: meta.name(),
            bits,
            order: order.map(Field::name).collect(),
            total_bits: meta.total_bits(),
            unit: unit.to_string(),
            unit_millis: unit.millis(),
            epoch: meta.spec().epoch.to_string(),
            epoch_millis: meta.spec().epoch.0,
            ends: meta.end().to_string(),
            capacity_per_second: meta.capacity_per_second(),
            machine: own.machine,
            gen_method: own.gen_method,
            id_type: own.id_type,
            version: own.version,
        }
    }
}

/// What is inside an ID, as Leaf's monitor says it. Every member is a string.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "timestamp": "1515031703000(2018-01-04 02:08:23.000)", "sequenceId": "0", "workerId": "1021"
}))]
pub struct LeafDecoded {
    /// Milliseconds since 1970 and, in brackets, the same in the server's time zone.
    pub timestamp: String,
    /// The place inside the tick.
    pub sequence_id: String,
    /// The machine ID.
    pub worker_id: String,
}

/// What is inside a UID, as uid-generator says it. Every member is a string.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "UID": "3516414031872", "timestamp": "2016-05-20 00:01:42", "workerId": "19", "sequence": "0"
}))]
pub struct UidParsed {
    /// The UID.
    #[serde(rename = "UID")]
    pub uid: String,
    /// Its second, in the server's time zone.
    pub timestamp: String,
    /// The machine ID.
    pub worker_id: String,
    /// The place inside the second.
    pub sequence: String,
}

/// An error, as RFC 9457 has it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "urn:vesta:problem:out-of-range", "title": "Value out of range", "status": 400,
    "detail": "machine must be a whole number 0 to 1023, but is `1024`",
    "kind": "OUT_OF_RANGE", "parameter": "machine"
}))]
pub struct ProblemBody<'a> {
    /// A URN of the kind.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The kind in words; the same for every error of the kind.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong here, and what to do about it.
    pub detail: &'a str,
    /// The stable name of the kind, the same as over gRPC: what a program decides by.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// The parameter or member that is wrong, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<&'a str>,
    /// Before this many milliseconds no other attempt makes sense. In whole seconds: `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}
