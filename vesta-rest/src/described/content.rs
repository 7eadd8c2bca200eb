//! Bodies of requests and responses.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::{ArrayBuilder, ContentBuilder, ObjectBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use vesta_boot::answers::OneId;

/// Schemas of the document, by name.
pub(crate) type Schemas = BTreeMap<String, RefOr<Schema>>;

/// A body: its media type and schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    pub(crate) media: &'static str,
    schema: fn(&mut Schemas) -> RefOr<Schema>,
    /// JSON, or plain text if that is the media type.
    example: &'static str,
    /// An ID as the member `id`.
    pub(crate) has_id: bool,
}

pub(crate) const fn text(example: &'static str) -> Content {
    Content {
        media: "text/plain",
        schema: |_| String::schema(),
        example,
        has_id: false,
    }
}

pub(crate) const fn number(example: &'static str) -> Content {
    Content {
        media: "application/json",
        schema: |_| u64::schema(),
        example,
        has_id: false,
    }
}

pub(crate) const fn html() -> Content {
    Content {
        media: "text/html",
        ..text("")
    }
}

pub(crate) const fn object() -> Content {
    let schema = |_: &mut _| ObjectBuilder::new().schema_type(Type::Object).into();
    Content {
        media: "application/json",
        schema,
        example: "",
        has_id: false,
    }
}

pub(crate) const fn json<T: ToSchema>() -> Content {
    Content {
        media: "application/json",
        schema: named::<T>,
        example: "",
        has_id: false,
    }
}

/// The body of an endpoint that returns a new ID.
pub(crate) const fn one_id() -> Content {
    Content {
        has_id: true,
        ..json::<OneId>()
    }
}

pub(crate) const fn list<T: ToSchema>() -> Content {
    let schema = |all: &mut _| ArrayBuilder::new().items(named::<T>(all)).into();
    Content {
        media: "application/json",
        schema,
        example: "",
        has_id: false,
    }
}

/// Adds the schemas of a type and its parts, and returns a reference to it.
pub(crate) fn named<T: ToSchema>(all: &mut Schemas) -> RefOr<Schema> {
    let mut parts = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut parts);
    all.extend(parts);
    Ref::from_schema_name(T::name()).into()
}

impl Content {
    /// The body as the OpenAPI document describes it.
    pub(crate) fn described(&self, schemas: &mut Schemas) -> utoipa::openapi::Content {
        let example = match self.media {
            _ if self.example.is_empty() => None,
            "text/plain" => Some(Value::from(self.example)),
            _ => serde_json::from_str(self.example).ok(),
        };
        ContentBuilder::new()
            .schema(Some((self.schema)(schemas)))
            .example(example)
            .build()
    }
}
