//! IDs in diesel: a `BigInt` of every backend. A set sign bit is an error in both directions.

use diesel::backend::Backend;
use diesel::deserialize::{self, FromSql};
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::BigInt;

use super::VestaId;

impl<DB: Backend> ToSql<BigInt, DB> for VestaId
where
    i64: ToSql<BigInt, DB>,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
        i64::try_from(*self)?;
        self.0.to_sql(out)
    }
}

impl<DB: Backend> FromSql<BigInt, DB> for VestaId
where
    i64: FromSql<BigInt, DB>,
{
    fn from_sql(value: DB::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(i64::from_sql(value)?.try_into()?)
    }
}
