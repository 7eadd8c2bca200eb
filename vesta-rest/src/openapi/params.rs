//! Parameters of the endpoints.

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{KnownFormat, ObjectBuilder, Required, Schema, SchemaFormat, Type};
use vesta_intf::{IdFormat, IdMeta};

/// A parameter of a query or a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    kind: Kind,
    required: bool,
    description: &'static str,
    example: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    /// A text in the path.
    Path,
    /// A whole number, at least `min`, and at most `max` where that is the same for every layout.
    Number {
        min: u64,
        max: Option<u64>,
    },
    /// One of these names; the first is the example.
    OneOf(fn() -> Vec<&'static str>),
}

impl Param {
    pub(crate) fn in_query(&self) -> bool {
        !matches!(self.kind, Kind::Path)
    }

    /// The parameter as the OpenAPI document describes it.
    pub(super) fn described(&self) -> Parameter {
        let object = ObjectBuilder::new();
        let mut example = Some(Value::from(self.example));
        let schema = match self.kind {
            Kind::Text | Kind::Path => object.schema_type(Type::String),
            Kind::Number { min, max } => {
                example = self.example.parse::<u64>().ok().map(Value::from);
                let int64 = SchemaFormat::KnownFormat(KnownFormat::Int64);
                object
                    .schema_type(Type::Integer)
                    .format(Some(int64))
                    .minimum(Some(min))
                    .maximum(max)
            }
            Kind::OneOf(names) => {
                let names = names();
                example = Some(Value::from(names[0]));
                object.schema_type(Type::String).enum_values(Some(names))
            }
        };
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(if self.in_query() { ParameterIn::Query } else { ParameterIn::Path })
            .required(if self.required { Required::True } else { Required::False })
            .description(Some(self.description))
            .schema(Some(Schema::Object(schema.build())))
            .example(example)
            .build()
    }
}

const NUMBER: Kind = Kind::Number { min: 0, max: None };
const UP_TO_1000: Kind = Kind::Number { min: 1, max: Some(1000) };
const FORMATS: Kind = Kind::OneOf(|| IdFormat::ALL.map(IdFormat::name).to_vec());
const LAYOUTS: Kind = Kind::OneOf(|| IdMeta::all_known().map(|meta| meta.name()).collect());

macro_rules! params {
    ($($constant:ident = $name:literal $required:literal $kind:expr, $description:literal $example:literal;)*) => {$(
        pub(crate) const $constant: Param = Param {
            name: $name,
            required: $required,
            kind: $kind,
            description: $description,
            example: $example,
        };
    )*};
}

// name, required, kind, description, example
params! {
    FORMAT = "format" false FORMATS, "Text format of IDs; default: decimal" "";
    LAYOUT = "layout" false LAYOUTS,
        "The layout to explain the ID by; default: the server's own, also if that is `custom`" "";
    ID = "id" true Kind::Text,
        "The ID, 0 to 18446744073709551615, in the format named by `format`" "2407837855670862845";
    PATH_ID = "id" true Kind::Path,
        "The ID, 0 to 18446744073709551615, in the format named by `format`" "2407837855670862845";
    SNOWFLAKE_ID = "snowflakeId" true Kind::Text, "The ID in decimal digits" "2407837855670862845";
    UID = "uid" true Kind::Text, "The UID in decimal digits" "3516414031872";
    COUNT = "count" true UP_TO_1000, "Number of IDs, 1 to 1,000. More is refused, not clamped" "2";
    OPTIONAL_COUNT = "count" false UP_TO_1000,
        "Number of numbers, 1 to 1,000, as a list `ids`; default: one, as `id`" "";
    SEGMENT_KEY = "key" true Kind::Path, "The business tag" "leaf-segment-test";
    SNOWFLAKE_KEY = "key" true Kind::Path, "Any text" "test";
    TICKS = "time" true NUMBER, "The time field: ticks since the layout's epoch" "94990103";
    TZ = "tz" false Kind::Text, "An IANA time zone; default: UTC" "Asia/Shanghai";
    MOMENT = "time" true Kind::Text,
        "Digits alone: milliseconds since 1970. Otherwise RFC 3339 with its offset; a `+` in it is \
         written `%2B`" "2026-01-01T00:00:00Z";
    SEQ = "seq" true NUMBER, "Sequence number inside the tick" "0";
    MACHINE = "machine" false NUMBER, "The machine ID; default: the server's own" "1021";
    GEN_METHOD = "genMethod" false NUMBER, "0 to 3; default: the server's own" "2";
    TYPE = "type" false NUMBER, "0 max-peak, 1 min-granularity; default: the server's own" "0";
    VERSION = "version" false NUMBER, "0 or 1; default: the server's own" "0";
}
