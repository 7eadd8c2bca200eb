//! JSON bodies. IDs are strings: JavaScript and many JSON parsers read numbers as doubles, which
//! lose the lowest bits above 2^53.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use vesta_intf::{Field, Id, IdFormat, IdMeta};
use vesta_service::{SegmentStatus, SegmentTag};

/// An ID as a JSON string, in the requested format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdText {
    /// The ID.
    pub id: u64,
    /// Text format.
    pub format: IdFormat,
}

impl IdText {
    /// Passes the text to `take`.
    pub fn with<T>(self, take: impl FnOnce(&str) -> T) -> T {
        match self.format {
            // Decimal is by far the most common, and itoa is the fastest at it.
            IdFormat::Decimal => take(itoa::Buffer::new().format(self.id)),
            format => take(format.format(self.id).as_str()),
        }
    }
}

impl PartialSchema for IdText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "A 64-bit ID in the requested format, by default decimal. A string, because \
                 JavaScript rounds numbers above 2^53.",
            ))
            .pattern(Some("^[0-9A-Za-z]{1,20}$"))
            .examples(["2407837855670862845"])
            .into()
    }
}

impl ToSchema for IdText {}

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.with(|text| to.serialize_str(text))
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
    /// Generation method: 0 embedded, 1 central server, 2 REST, 3 reserved.
    pub gen_method: u64,
    /// The machine ID that made it.
    pub machine: u64,
    /// Sequence number inside the tick.
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
    /// Layout used: the requested one, else the server's; of Vesta's two, the one
    /// that the ID's type bit names.
    pub layout: &'static str,
    /// Start of its second or millisecond, RFC 3339, UTC.
    pub moment: String,
    /// Its fields; one that the layout does not have is 0.
    #[serde(flatten)]
    pub fields: Fields,
}

/// The IDs of a moment, for comparisons.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "lower": "2678628990637309952", "upper": "2678628991711051775",
    "moment": "2026-01-01T00:00:00.000Z", "layout": "max-peak"
}))]
pub struct Bounds {
    /// The smallest ID of the moment's tick.
    pub lower: IdText,
    /// The largest ID of the moment's tick.
    pub upper: IdText,
    /// Start of that tick, its second or millisecond, RFC 3339, UTC.
    pub moment: String,
    /// Layout of the IDs: the server's, or of Vesta's two the one of the requested type.
    pub layout: &'static str,
}

/// One number, or with `count` several.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[allow(missing_docs, dead_code, reason = "describes the responses of two types")]
pub enum OneOrMany {
    One(OneId),
    Many(ManyIds),
}

/// Parts of an ID to assemble. Values are not yet parsed, so that a wrong one is refused with its name
/// and range; unknown and repeated members are refused by serde.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"time": 94990103, "seq": 0, "machine": 1021, "genMethod": 2, "type": 0, "version": 0}))]
pub struct Parts {
    /// Ticks since the layout's epoch, in the layout's unit.
    #[schema(value_type = u64)]
    time: Option<Value>,
    /// Sequence number inside the tick.
    #[schema(value_type = u64)]
    seq: Option<Value>,
    /// The machine ID; left out: the server's own.
    #[schema(value_type = Option<u64>)]
    machine: Option<Value>,
    /// 0 to 3; left out: the server's own.
    #[schema(value_type = Option<u64>)]
    gen_method: Option<Value>,
    /// 0 max-peak, 1 min-granularity; left out: the server's own.
    #[serde(rename = "type")]
    #[schema(value_type = Option<u64>)]
    id_type: Option<Value>,
    /// 0 or 1; left out: the server's own.
    #[schema(value_type = Option<u64>)]
    version: Option<Value>,
}

impl Parts {
    /// Takes the value of a member.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        match name {
            "time" => self.time.take(),
            "seq" => self.seq.take(),
            "machine" => self.machine.take(),
            "genMethod" => self.gen_method.take(),
            "type" => self.id_type.take(),
            _ => self.version.take(),
        }
    }
}

/// Definition of a layout, independent of the server that uses it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shape {
    /// The name, or `custom`.
    pub name: &'static str,
    /// Widths of the fields in bits, by name; 0 for one that the layout does not have.
    pub bits: BTreeMap<&'static str, u8>,
    /// The order of the fields, most significant first.
    pub order: Vec<&'static str>,
    /// All bits together; an ID is below 2^totalBits.
    pub total_bits: u8,
    /// Unit of the time field: `second`, `10 ms` or `millisecond`.
    pub unit: String,
    /// The same in milliseconds.
    pub unit_millis: u64,
    /// Moment at which the time field is 0.
    pub epoch: String,
    /// The same in milliseconds since 1970.
    pub epoch_millis: u64,
    /// Moment at which the layout runs out of IDs.
    pub ends: String,
    /// Maximum number of IDs per second and machine ID.
    pub capacity_per_second: u64,
}

impl From<&IdMeta> for Shape {
    fn from(meta: &IdMeta) -> Self {
        let fields = meta.fields().into_iter();
        let (unit, epoch) = (meta.spec().unit, meta.spec().epoch);
        Self {
            name: meta.name(),
            bits: fields.clone().map(|field| (field.name(), meta.bits(field))).collect(),
            order: fields.filter(|field| meta.bits(*field) > 0).map(Field::name).collect(),
            total_bits: meta.total_bits(),
            unit: unit.to_string(),
            unit_millis: unit.millis(),
            epoch: epoch.to_string(),
            epoch_millis: epoch.0,
            ends: meta.end().to_string(),
            capacity_per_second: meta.capacity_per_second(),
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
    "totalBits": 64, "unit": "second", "unitMillis": 1000,
    "epoch": "2014-12-31T16:00:00.000Z", "epochMillis": 1420041600000u64,
    "ends": "2049-01-09T05:37:04.000Z", "capacityPerSecond": 1048576,
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
        let Id { machine, gen_method, id_type, version, .. } = *own;
        Self { shape: meta.into(), machine, gen_method, id_type, version }
    }
}

/// A layout that IDs can be explained by.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "name": "sonyflake",
    "bits": {"version": 0, "type": 0, "genMethod": 0, "time": 39, "seq": 8, "machine": 16},
    "order": ["time", "seq", "machine"], "totalBits": 63, "unit": "10 ms", "unitMillis": 10,
    "epoch": "2014-09-01T00:00:00.000Z", "epochMillis": 1409529600000u64,
    "ends": "2188-11-16T03:28:58.880Z", "capacityPerSecond": 25600,
    "about": "Sonyflake with its default start time, in steps of 10 ms",
    "makesIds": true, "own": false
}))]
pub struct KnownLayout {
    /// The layout itself.
    #[serde(flatten)]
    pub shape: Shape,
    /// One-line description.
    pub about: &'static str,
    /// True if a generator can use a layout of this kind; false if it only explains IDs.
    pub makes_ids: bool,
    /// True if this server makes its IDs in it.
    pub own: bool,
}

impl KnownLayout {
    /// Describes a layout, and whether it is the server's own.
    pub fn new(meta: &IdMeta, own: &IdMeta) -> Self {
        Self {
            shape: meta.into(),
            about: meta.about(),
            makes_ids: meta.check_generates().is_ok(),
            own: meta == own,
        }
    }
}

/// The layouts that IDs can be explained by.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KnownLayouts {
    /// The layouts.
    pub layouts: Vec<KnownLayout>,
}

/// The fields of an ID as Leaf's monitor shows them. Every member is a string.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "timestamp": "1515031703000(2018-01-04 02:08:23.000)", "sequenceId": "0", "workerId": "1021"
}))]
pub struct LeafDecoded {
    /// Milliseconds since 1970 and, in brackets, the same in the server's time zone.
    pub timestamp: String,
    /// Sequence number inside the tick.
    pub sequence_id: String,
    /// The machine ID.
    pub worker_id: String,
}

/// The fields of a UID as uid-generator shows them. Every member is a string.
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
    /// Sequence number inside the second.
    pub sequence: String,
}

/// In-memory ranges of one segment tag. Its numbers are strings.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "key": "orders", "position": "1042", "current": ["1001", "2001"], "next": [["2001", "3001"]],
    "step": 1000, "perSecond": 42
}))]
pub struct SegmentCache {
    /// The tag.
    pub key: String,
    /// The next number to issue.
    pub position: String,
    /// Current range: its first number, and the first one after it.
    pub current: Option<[String; 2]>,
    /// Prefetched ranges.
    pub next: Vec<[String; 2]>,
    /// Step of the next fetch.
    pub step: u64,
    /// Numbers issued per second.
    pub per_second: u64,
    /// Last database error, even if it has since recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl From<SegmentStatus> for SegmentCache {
    fn from(status: SegmentStatus) -> Self {
        let text = |range: std::ops::Range<u64>| [range.start.to_string(), range.end.to_string()];
        Self {
            key: status.key,
            position: status.position.to_string(),
            current: status.current.map(text),
            next: status.next.into_iter().map(text).collect(),
            step: status.step,
            per_second: status.rate,
            last_error: status.last_error,
        }
    }
}

/// A row of the table of segment tags.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"biz_tag": "orders", "max_id": "3001", "step": 1000, "description": null, "update_time": "2026-01-01T00:00:00.000Z"}))]
pub struct SegmentRow {
    /// The tag.
    pub biz_tag: String,
    /// The first number that was never handed out.
    pub max_id: String,
    /// Minimum number of numbers per fetch.
    pub step: i64,
    /// Purpose of the tag.
    pub description: Option<String>,
    /// Time of the last change to the row, in UTC.
    pub update_time: Option<String>,
}

impl From<SegmentTag> for SegmentRow {
    fn from(tag: SegmentTag) -> Self {
        Self {
            biz_tag: tag.key,
            max_id: tag.max_id.to_string(),
            step: tag.step,
            description: tag.description,
            update_time: tag.update_time.map(|moment| moment.to_string()),
        }
    }
}

/// An error, as RFC 9457 has it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "urn:vesta:problem:out-of-range", "title": "Value out of range", "status": 400,
    "detail": "machine must be a whole number 0 to 1023, but is `1024`",
    "kind": "OUT_OF_RANGE", "parameter": "machine"
}))]
pub struct ProblemBody {
    /// A URN of the kind.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// Title of the kind; the same for every error of the kind.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Description of this error, and how to fix it.
    pub detail: String,
    /// Stable name of the kind, the same as over gRPC, for programs to branch on.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// The offending parameter or member, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Minimum delay in milliseconds before another attempt. In whole seconds: `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}
