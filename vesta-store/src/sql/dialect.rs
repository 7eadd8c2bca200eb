//! What a kind of database does in its own way.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::{ColumnIndex, Connection, Decode, Row, Type};
use vesta_service::StoreError;

use super::errors::{Class, Failure};
use super::segments::SegmentStatements;

/// A kind of database, and how to reach one.
pub(crate) trait Dialect: Sized + Send + Sync + 'static {
    /// Its name, for people.
    const NAME: &'static str;
    const STATEMENTS: Statements;

    type Connection: Connection + Send + 'static;
    type Row: Cells + Send;

    /// `user@host:port/database`.
    fn shown(&self) -> &str;

    /// A new connection, whose lock waits end after about `limit`, which commits each statement, and
    /// asks for every commit to be made durable.
    fn connect(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<Self::Connection, sqlx::Error>> + Send;

    /// Refuses a server that takes no changes, or does not keep them. Returns whether it may forget
    /// some in a crash all the same.
    fn inspect(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// What is wrong with a table of this kind, as [`Tables::find`] names it.
    fn flaw(kind: &str) -> Option<String>;

    /// Returns the number of rows inserted, or found by an update.
    fn execute(
        connection: &mut Self::Connection,
        statement: &'static str,
        values: &[Value],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    fn fetch(
        connection: &mut Self::Connection,
        statement: &'static str,
        values: &[Value],
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send;

    /// Returns the number of the new row.
    fn insert_node(
        connection: &mut Self::Connection,
        host: &str,
        port: &str,
    ) -> impl Future<Output = Result<i64, sqlx::Error>> + Send;

    fn class(error: &dyn DatabaseError) -> Class;

    /// The error with its number, for people.
    fn said(error: &dyn DatabaseError) -> String;
}

/// The texts. The order of the values is the same in each dialect.
pub(crate) struct Statements {
    pub(crate) tables: Tables,
    /// name → uuid, fingerprint, floor
    pub(crate) find_namespace: &'static str,
    /// → a new one
    pub(crate) new_uuid: &'static str,
    /// name, uuid, fingerprint
    pub(crate) insert_namespace: &'static str,
    /// floor, name
    pub(crate) raise_floor: &'static str,
    /// name → floor and the columns of a record, null in the only row if there is no record
    pub(crate) list: &'static str,
    /// machine, name → as `list`
    pub(crate) read: &'static str,
    /// the columns from epoch on, name, machine, expected epoch, owner, bound
    pub(crate) update: &'static str,
    /// machine, the columns from epoch on, name, expected floor, which is locked
    pub(crate) insert: &'static str,
    /// → milliseconds since 1970
    pub(crate) now: &'static str,
    pub(crate) node_table: Tables,
    /// → the highest number, or null
    pub(crate) highest_node: &'static str,
    pub(crate) segments: SegmentStatements,
}

pub(crate) struct Tables {
    /// The subject of "… does not exist".
    pub(crate) what: &'static str,
    /// → the kind of each that exists
    pub(crate) find: &'static str,
    /// One for each.
    pub(crate) create: &'static [&'static str],
}

/// A value for a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Number(i64),
    Flag(bool),
    Text(String),
    /// Sixteen bytes, big-endian.
    Wide(u128),
}

/// Reading what a statement returned.
pub(crate) trait Cells {
    fn is_null(&self, column: usize) -> Result<bool, Failure>;
    fn number(&self, column: usize) -> Result<u64, Failure>;
    fn signed(&self, column: usize) -> Result<i64, Failure>;
    fn flag(&self, column: usize) -> Result<bool, Failure>;
    fn text(&self, column: usize) -> Result<String, Failure>;
    fn wide(&self, column: usize) -> Result<u128, Failure>;
}

impl<R> Cells for R
where
    R: Row,
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> bool: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    fn is_null(&self, column: usize) -> Result<bool, Failure> {
        Ok(sqlx::ValueRef::is_null(&self.try_get_raw(column)?))
    }

    fn number(&self, column: usize) -> Result<u64, Failure> {
        let number: i64 = self.try_get(column)?;
        u64::try_from(number).map_err(|_| foreign(format_args!("the number {number}")))
    }

    fn signed(&self, column: usize) -> Result<i64, Failure> {
        Ok(self.try_get(column)?)
    }

    fn flag(&self, column: usize) -> Result<bool, Failure> {
        Ok(self.try_get(column)?)
    }

    fn text(&self, column: usize) -> Result<String, Failure> {
        Ok(self.try_get(column)?)
    }

    fn wide(&self, column: usize) -> Result<u128, Failure> {
        let bytes: Vec<u8> = self.try_get(column)?;
        let length = bytes.len();
        let sixteen = bytes.try_into().map_err(|_| foreign(format_args!("{length} bytes")))?;
        Ok(u128::from_be_bytes(sixteen))
    }
}

fn foreign(what: fmt::Arguments<'_>) -> Failure {
    StoreError::permanent(format!("the database holds what no Vesta wrote: {what}")).into()
}
