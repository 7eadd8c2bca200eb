//! IDs in sqlx: available for every database that supports `i64`. A set sign bit is an error in
//! both directions.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Type};

use super::VestaId;

impl<DB: Database> Type<DB> for VestaId
where
    i64: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        <i64 as Type<DB>>::type_info()
    }

    fn compatible(column: &DB::TypeInfo) -> bool {
        <i64 as Type<DB>>::compatible(column)
    }
}

impl<'q, DB: Database> Encode<'q, DB> for VestaId
where
    i64: Encode<'q, DB>,
{
    fn encode_by_ref(&self, out: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        i64::try_from(*self)?.encode(out)
    }
}

impl<'r, DB: Database> Decode<'r, DB> for VestaId
where
    i64: Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(i64::decode(value)?.try_into()?)
    }
}
