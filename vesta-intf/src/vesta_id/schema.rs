//! OpenAPI schema of an ID: a string of digits.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::VestaId;

impl PartialSchema for VestaId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::Custom("uint64".into())))
            .pattern(Some("^[0-9]{1,20}$"))
            .examples(["1285482222412933127"])
            .into()
    }
}

impl ToSchema for VestaId {}
