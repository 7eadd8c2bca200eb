//! Parameters of the endpoints.

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{KnownFormat, ObjectBuilder, Required, Schema, SchemaFormat, Type};
use vesta_boot::TextFormat;
use vesta_explain::layouts;
use vesta_intf::{Field, IdMeta, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL};

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
    /// Text that matches this pattern.
    Text(&'static str),
    /// Text in the path that matches this pattern.
    Path(&'static str),
    /// A whole number from `min` to `max`.
    Number { min: u64, max: u64 },
    /// Value of a field, limited by its width in the layout.
    Bits(Field),
    /// One of these names; the first is the example.
    OneOf(fn() -> Vec<&'static str>),
}

impl Param {
    pub(crate) fn in_query(&self) -> bool {
        !matches!(self.kind, Kind::Path(_))
    }

    /// The parameter as the OpenAPI document of a server with this layout describes it.
    pub(crate) fn described(&self, layout: &IdMeta) -> Parameter {
        let mut example = Some(Value::from(self.example));
        let mut number = |min: u64, max: u64| {
            example = self.example.parse::<u64>().ok().map(Value::from);
            let int64 = SchemaFormat::KnownFormat(KnownFormat::Int64);
            let number = ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(int64));
            number.minimum(Some(min)).maximum(Some(max))
        };
        let schema = match self.kind {
            Kind::Text(pattern) | Kind::Path(pattern) => ObjectBuilder::new()
                .schema_type(Type::String)
                .pattern(Some(pattern)),
            Kind::Number { min, max } => number(min, max),
            Kind::Bits(field) => number(0, most(layout, field)),
            Kind::OneOf(names) => {
                let names = names();
                example = Some(Value::from(names[0]));
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some(names))
            }
        };
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(if self.in_query() {
                ParameterIn::Query
            } else {
                ParameterIn::Path
            })
            .required(if self.required {
                Required::True
            } else {
                Required::False
            })
            .description(Some(self.description))
            .schema(Some(Schema::Object(schema.build())))
            .example(example)
            .build()
    }
}

/// Maximum of a field; between Vesta's two layouts, in the one that has more bits for it.
fn most(layout: &IdMeta, field: Field) -> u64 {
    let types = 0..=layout.max(Field::Type);
    let layouts = types.filter_map(|id_type| layout.of_type_value(id_type).ok());
    layouts
        .map(|layout| layout.max(field))
        .max()
        .unwrap_or_default()
}

const UP_TO_1000: Kind = Kind::Number { min: 1, max: 1000 };
const DECIMAL: &str = "^[0-9]{1,20}$";
/// An ID in any format.
const ID_TEXT: &str = "^[0-9A-Za-z*~$=-]{1,36}$";
const ONCE_TEXT: &str = "^[0-9A-Za-z._~-]{1,64}$";
const ANY: &str = "^[^/]+$";
const FORMATS: Kind = Kind::OneOf(|| TextFormat::names().collect());
const LAYOUTS: Kind = Kind::OneOf(|| layouts::all().map(|meta| meta.name()).collect());

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
    FORMAT = "format" false FORMATS, "Text format of IDs; default: decimal. `uuid-v7` needs a layout with the time on top, `opaque` a key in the server" "";
    TO = "to" false FORMATS, "Text format of the ID in the response; default: that of `format`" "";
    ONCE = "once" false Kind::Text(ONCE_TEXT),
        "Random text, another one for each request: 1 to 64 letters, digits or `-._~`. The answer repeats it: as the member `once`, \
         or after the text and a blank. An answer without it is one to another request, out of a cache or a proxy: its IDs \
         may be another caller's" "x7Gk2mQ9vB4tR1nZ";
    LAYOUT = "layout" false LAYOUTS,
        "The layout for explaining the ID; default: the server's own, even if that is `custom`" "";
    ID = "id" true Kind::Text(ID_TEXT),
        "The ID, 0 to 18446744073709551615, in the format named by `format`" "2407837855670862845";
    PATH_ID = "id" true Kind::Path(ID_TEXT),
        "The ID, 0 to 18446744073709551615, in the format named by `format`" "2407837855670862845";
    SNOWFLAKE_ID = "snowflakeId" true Kind::Text(DECIMAL), "The ID in decimal digits" "2407837855670862845";
    UID = "uid" true Kind::Text(DECIMAL), "The UID in decimal digits" "3516414031872";
    COUNT = "count" true UP_TO_1000, "Number of IDs, 1 to 1,000. More is refused, not clamped" "2";
    RUN_COUNT = "count" true Kind::Number { min: 1, max: MAX_RUN_IDS_PER_CALL as u64 },
        "Number of IDs, 1 to 1,048,576. More is refused, not clamped" "10000";
    OPTIONAL_COUNT = "count" false UP_TO_1000,
        "How many numbers, 1 to 1,000, as a list `ids`; default: one, as `id`" "";
    SEGMENT_TAG = "tag" true Kind::Path(ANY), "The business tag" "leaf-segment-test";
    BIZ_TYPE = "bizType" false Kind::Text("^[A-Za-z0-9._~-]{1,63}$"), "The tag" "test";
    TOKEN = "token" false Kind::Text("^.+$"), "A token that is valid for the tag" "0f673adf80504e2eaa552f5d791b644c";
    BATCH_SIZE = "batchSize" false Kind::Text("^ *-?[0-9]* *$"),
        "How many numbers, up to 100,000; default: 1" "3";
    SERIAL_TAG = "tag" true Kind::Path("^[^/]{1,128}$"), "The tag, 1 to 128 characters" "invoices";
    SERIAL = "serial" true Kind::Text("^.+$"), "The serial" "INV-261122-0000427";
    SERIAL_COUNT = "count" false Kind::Number { min: 1, max: MAX_IDS_PER_CALL as u64 },
        "Number of serials, 1 to 10,000, as a list `serials`; default: one" "";
    SNOWFLAKE_KEY = "key" true Kind::Path(ANY), "Any text" "test";
    TICKS = "time" true Kind::Bits(Field::Time), "The time field: ticks since the layout's epoch" "94990103";
    TZ = "tz" false Kind::Text("^[A-Za-z0-9+_/-]+$"), "An IANA time zone; default: UTC" "Asia/Shanghai";
    MOMENT = "time" true Kind::Text("^(0|[0-9]{4}|[0-9]{12,20}|[0-9]{4}-?[0-9]{2}.*)$"),
        "RFC 3339 with `Z` or its offset, in which `+` is written `%2B`; a whole day, month or year in \
         UTC (2026-01-31, 2026-01, 2026); or milliseconds since 1970, of 12 digits or more" "2026-01-01T00:00:00Z";
    SEQ = "seq" true Kind::Bits(Field::Seq), "Sequence number inside the tick" "0";
    MACHINE = "machine" false Kind::Bits(Field::Machine), "The machine ID; default: the server's own" "1021";
    GEN_METHOD = "genMethod" false Kind::Bits(Field::GenMethod), "0 to 3; default: the server's own" "2";
    TYPE = "type" false Kind::Bits(Field::Type), "0 max-peak, 1 min-granularity; default: the server's own" "0";
    VERSION = "version" false Kind::Bits(Field::Version), "0 or 1; default: the server's own" "0";
}
