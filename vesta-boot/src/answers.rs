//! Answers: each fact that a program tells, as one value with one name, for REST, gRPC, the admin listener and the
//! command line. Values only: they read no clock, store or file.
//!
//! A number that may exceed 2^53 is a [`Long`], which JSON holds as text. An absent value has no member.

mod events;
mod ids;
mod layouts;
mod pool;
mod problem;
mod status;
mod tags;

use serde::{Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

pub use events::{Event, Events};
pub use ids::{
    Bounds, Ends, Explained, Fields, IdText, ManyIds, OneId, OneOrMany, Parts, Rounding, Run, Runs,
    in_utc,
};
pub use layouts::{Bits, KnownLayout, KnownLayouts, Layout, NamedLayout, Shape};
pub use pool::{Doubt, MachineRecord, Pool};
pub use problem::Problem;
pub(crate) use status::window_left;
pub use status::{Lease, LeaseOfAll, MachineNow, Rate, ServiceNow, Status};
pub use tags::{Outcomes, Supply, Whole};
pub(crate) use tags::{left, length};

/// An answer that can be a row of a table.
pub trait Row: Serialize {
    /// The columns of the table, in words. The column `last change` shows the member `lastChange`.
    const COLUMNS: &'static [&'static str];
}

/// A whole number that may exceed 2^53. In JSON it is text, because JavaScript would round it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Long(pub u64);

impl Serialize for Long {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl PartialSchema for Long {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9]{1,20}$"))
            .into()
    }
}

impl ToSchema for Long {}
