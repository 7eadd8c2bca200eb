//! `VestaId`: a distinct type for IDs in structs, tables and JSON.
//!
//! ```text
//!  serialized.rs  serde: text, or a number on request    feature `serde`
//!  bound.rs       sqlx: BIGINT of any database           feature `sqlx`
//!  column.rs      diesel: `BigInt` of any backend        feature `diesel`
//!  schema.rs      utoipa: the schema of the text         feature `utoipa`
//! ```

#[cfg(feature = "sqlx")]
mod bound;
#[cfg(feature = "diesel")]
mod column;
#[cfg(feature = "utoipa")]
mod schema;
#[cfg(feature = "serde")]
pub(crate) mod serialized;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::{IdError, IdFormat, IdMeta, UnixMillis};

/// A 64-bit ID. It prints and parses as decimal digits, and orders as an unsigned number.
///
/// In JSON it is a string, because JavaScript rounds numbers above 2^53; a field with
/// `#[serde(with = "vesta_intf::id_as_number")]` (`vesta_service::contract::id_as_number`) is a number. In databases it
/// is a `BIGINT` (features `sqlx`, `diesel`).
///
/// ```
/// use vesta_intf::{IdMeta, VestaId};
///
/// let id: VestaId = "1073743875".parse()?;
/// assert_eq!(u64::from(id), 1_073_743_875);
/// assert_eq!(id.created_at(&IdMeta::MAX_PEAK)?.to_string(), "2014-12-31T16:00:01.000Z");
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "diesel",
    derive(diesel::expression::AsExpression, diesel::deserialize::FromSqlRow),
    diesel(sql_type = diesel::sql_types::BigInt)
)]
#[repr(transparent)]
pub struct VestaId(i64); // the bits as in a column: diesel borrows an i64

impl VestaId {
    /// The moment at which its tick began. Of Vesta's two layouts, the ID's own type bit selects one.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if it has more bits than the layout.
    pub fn created_at(self, meta: &IdMeta) -> Result<UnixMillis, IdError> {
        let meta = meta.explaining(self.into());
        meta.moment_of(meta.unpack(self.into())?.time)
    }
}

impl From<u64> for VestaId {
    #[inline]
    fn from(id: u64) -> Self {
        Self(id.cast_signed())
    }
}

impl From<VestaId> for u64 {
    #[inline]
    fn from(id: VestaId) -> Self {
        id.0.cast_unsigned()
    }
}

/// # Errors
/// [`IdError::Invalid`] for a negative number.
impl TryFrom<i64> for VestaId {
    type Error = IdError;

    fn try_from(id: i64) -> Result<Self, IdError> {
        if id < 0 {
            let reason = format!("{id} is negative: its sign bit, which version 1 sets, must be 0");
            return Err(IdError::invalid("id", reason));
        }
        Ok(Self(id))
    }
}

/// # Errors
/// [`IdError::Invalid`] if the sign bit is set.
impl TryFrom<VestaId> for i64 {
    type Error = IdError;

    fn try_from(id: VestaId) -> Result<Self, IdError> {
        if id.0 < 0 {
            let reason =
                format!("{id} does not fit an i64: its sign bit, which version 1 sets, must be 0");
            return Err(IdError::invalid("id", reason));
        }
        Ok(id.0)
    }
}

impl Ord for VestaId {
    fn cmp(&self, other: &Self) -> Ordering {
        u64::from(*self).cmp(&(*other).into())
    }
}

impl PartialOrd for VestaId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Decimal digits without leading zeros.
impl fmt::Display for VestaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        u64::from(*self).fmt(f)
    }
}

impl fmt::Debug for VestaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VestaId({self})")
    }
}

/// Parses as [`IdFormat::Decimal`] does: digits only.
impl FromStr for VestaId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        IdFormat::Decimal.parse(text).map(Self::from)
    }
}
