//! IDs. They are text: JavaScript and many JSON parsers read numbers as doubles, which lose the lowest bits above 2^53.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use vesta_explain::rounded;
use vesta_intf::{Field, Id, IdError, IdFormat, IdMeta, UnixMillis};

use super::Row;
use crate::TextFormat;

/// An ID as a JSON string, in the requested format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdText {
    /// In decimal digits, by far the most common format.
    Decimal(u64),
    /// In another format.
    Other(vesta_intf::IdText),
}

impl IdText {
    /// The text of an ID.
    ///
    /// # Errors
    /// As [`TextFormat::text`].
    pub fn new(id: u64, format: &TextFormat<'_>) -> Result<Self, IdError> {
        match format {
            TextFormat::Plain(IdFormat::Decimal) => Ok(Self::Decimal(id)),
            format => format.text(id).map(Self::Other),
        }
    }

    /// Passes the text to `take`.
    pub fn with<T>(self, take: impl FnOnce(&str) -> T) -> T {
        match self {
            Self::Decimal(id) => take(itoa::Buffer::new().format(id)), // the fastest at it
            Self::Other(text) => take(text.as_str()),
        }
    }
}

impl fmt::Display for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|text| f.pad(text))
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
            .pattern(Some("^[0-9A-Za-z*~$=-]{1,36}$"))
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
    /// The `once` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

/// Several IDs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"ids": ["2407837855670862845", "2407837855670863869"]}))]
pub struct ManyIds {
    /// The IDs, strictly ascending.
    pub ids: Vec<IdText>,
    /// The `once` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

/// Consecutive IDs: `first`, `first + step`, and so on.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"first": "2407837855670862845", "step": "1024", "count": 10000}))]
pub struct Run {
    /// The first and smallest ID, in decimal.
    pub first: IdText,
    /// The distance between neighbours, in decimal; at least 1.
    pub step: IdText,
    /// Number of IDs; at least 1.
    pub count: u32,
}

/// Many IDs as runs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({"runs": [{"first": "2407837855670862845", "step": "1024", "count": 10000}]}))]
pub struct Runs {
    /// The runs, ordered by their first IDs. They overlap only where the server holds several machine IDs.
    pub runs: Vec<Run>,
    /// The `once` of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub once: Option<String>,
}

/// The fields of an ID as numbers, in the key order of the Java Vesta.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({"genMethod": 2, "machine": 1022, "seq": 0, "time": 12758739, "type": 0, "version": 0}))]
pub struct Fields {
    /// Generation method: 0 embedded, 1 central server, 2 REST, 3 database.
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
        let Id {
            gen_method,
            machine,
            seq,
            time,
            id_type,
            version,
        } = id;
        Self {
            gen_method,
            machine,
            seq,
            time,
            id_type,
            version,
        }
    }
}

/// The fields and time of an ID.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "2407837855670862845", "layout": "max-peak", "moment": "2018-01-04T02:08:23Z",
    "genMethod": 2, "machine": 1021, "seq": 0, "time": 94990103, "type": 0, "version": 0,
    "forms": {"base62": "2rrvDihMXHR", "crockford": "22TJVRQ0000ZX", "hex": "216a5bc5c00003fd"},
    "tick": {"lower": "2407837855670861824", "upper": "2407837856744603647"}
}))]
pub struct Explained {
    /// The ID.
    pub id: IdText,
    /// Layout used: the requested one, else the server's. Between Vesta's two layouts, the ID's
    /// type bit decides.
    pub layout: &'static str,
    /// Start of the ID's tick, RFC 3339, UTC, with the digits of the layout's unit up to milliseconds.
    pub moment: String,
    /// Fields of the ID; 0 for a field that the layout lacks.
    #[serde(flatten)]
    pub fields: Fields,
    /// The ID in other forms, by name.
    pub forms: BTreeMap<&'static str, String>,
    /// The smallest and the largest ID of its tick; left out if the layout does not sort by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tick: Option<Ends>,
    /// Present if the ID looks rounded by a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rounded: Option<Rounding>,
}

impl Explained {
    /// Explains an ID of this layout. Only a decimal one gets rounded: programs take no other format for a number.
    ///
    /// # Errors
    /// [`IdError`] if it is none; as [`IdText::new`].
    pub fn new(raw: u64, layout: &IdMeta, format: &TextFormat<'_>) -> Result<Self, IdError> {
        let id = layout.unpack(raw)?;
        let text = IdText::new(raw, format)?;
        let is_decimal = matches!(text, IdText::Decimal(_));
        let forms = [IdFormat::Hex, IdFormat::Base62, IdFormat::Crockford];
        Ok(Self {
            id: text,
            layout: layout.name(),
            moment: in_utc(layout.moment_of(id.time)?, layout),
            fields: id.into(),
            forms: forms.map(|form| (form.name(), form.encode(raw))).into(),
            tick: Ends::of_tick(&id, layout),
            rounded: Rounding::of(raw).filter(|_| is_decimal),
        })
    }
}

/// A moment in UTC (RFC 3339), with the digits of a layout's unit up to milliseconds.
pub fn in_utc(moment: UnixMillis, layout: &IdMeta) -> String {
    let text = moment.to_string();
    match layout.spec().unit.millis() {
        1000 => text.replacen(".000Z", "Z", 1),
        _ => text,
    }
}

/// The smallest and the largest of some IDs.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Ends {
    /// The smallest one.
    pub lower: IdText,
    /// The largest one.
    pub upper: IdText,
}

impl Ends {
    /// Those of the tick of an ID, if the layout sorts by time.
    pub fn of_tick(id: &Id, layout: &IdMeta) -> Option<Self> {
        let bound = |seq, machine| {
            layout
                .pack(&Id {
                    seq,
                    machine,
                    ..*id
                })
                .ok()
        };
        let last = bound(layout.max(Field::Seq), layout.max(Field::Machine));
        let (lower, upper) = bound(0, 0).zip(last)?;
        let ends = Self {
            lower: IdText::Decimal(lower),
            upper: IdText::Decimal(upper),
        };
        layout.spec().order.sorts_by_time().then_some(ends)
    }
}

/// Range of IDs that round to this one.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Rounding {
    /// Program that may have rounded the ID: `JavaScript` or `Excel`.
    pub by: &'static str,
    /// The smallest ID that rounds to this one.
    pub from: IdText,
    /// The largest ID that rounds to this one.
    pub until: IdText,
}

impl Rounding {
    /// That of an ID that looks rounded.
    pub fn of(id: u64) -> Option<Self> {
        rounded(id).map(|it| Self {
            by: it.by,
            from: IdText::Decimal(it.from),
            until: IdText::Decimal(it.until),
        })
    }
}

/// The smallest and largest ID of a time span, for range queries.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "lower": "2678628990637309952", "upper": "2678628991711051775",
    "moment": "2026-01-01T00:00:00Z", "layout": "max-peak", "genMethod": 2
}))]
pub struct Bounds {
    /// The smallest ID of the tick, day, month or year.
    pub lower: IdText,
    /// The largest ID of the tick, day, month or year.
    pub upper: IdText,
    /// Start of the first tick, RFC 3339, UTC, with the digits of the layout's unit up to milliseconds.
    pub moment: String,
    /// Layout of the IDs: the server's; between Vesta's two layouts, the one of the requested type.
    pub layout: &'static str,
    /// Value of the genMethod field of the IDs.
    pub gen_method: u64,
}

impl Row for Bounds {
    const COLUMNS: &'static [&'static str] = &["lower", "upper", "moment", "layout", "gen method"];
}

impl Bounds {
    /// The IDs from one to another.
    ///
    /// # Errors
    /// [`IdError`] if the first is none of the layout; as [`IdText::new`].
    pub fn new(
        lower: u64,
        upper: u64,
        layout: &IdMeta,
        format: &TextFormat<'_>,
    ) -> Result<Self, IdError> {
        let first = layout.unpack(lower)?;
        Ok(Self {
            lower: IdText::new(lower, format)?,
            upper: IdText::new(upper, format)?,
            moment: in_utc(layout.moment_of(first.time)?, layout),
            layout: layout.name(),
            gen_method: first.gen_method,
        })
    }
}

/// One number; with `count`, a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[allow(
    missing_docs,
    dead_code,
    reason = "describes the responses of two types"
)]
pub enum OneOrMany {
    One(OneId),
    Many(ManyIds),
}

/// Parts of an ID to assemble. Values stay unparsed here, so that an error names the member and its range. Serde
/// refuses unknown and repeated members.
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
    /// The machine ID; default: the server's own.
    #[schema(value_type = Option<u64>)]
    machine: Option<Value>,
    /// 0 to 3; default: the server's own.
    #[schema(value_type = Option<u64>)]
    gen_method: Option<Value>,
    /// 0 max-peak, 1 min-granularity; default: the server's own.
    #[serde(rename = "type")]
    #[schema(value_type = Option<u64>)]
    id_type: Option<Value>,
    /// 0 or 1; default: the server's own.
    #[schema(value_type = Option<u64>)]
    version: Option<Value>,
}

impl Parts {
    /// Takes the value of a member.
    pub fn take(&mut self, name: &str) -> Option<Value> {
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
