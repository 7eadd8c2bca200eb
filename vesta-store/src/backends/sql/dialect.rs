//! One kind of database: its statements, and how to connect to it.

use std::future::Future;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::{Column as _, ColumnIndex, Connection, Decode, Row, Type, TypeInfo as _};
use vesta_service::lease::{Put, StoreError};

use crate::{OpenError, SegmentTable, StoreUrl};

/// Meaning of a server error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nothing happened because of concurrent changes; the same statement may succeed now.
    Contended,
    /// The object exists already.
    Exists,
    /// Transient, or an operator will resolve it; also unknown errors.
    Unavailable,
    /// The server accepts no changes at the moment.
    ReadOnly,
    /// The password or the database in the URL is wrong.
    Denied,
    /// A privilege or a table is missing; an operator can grant or restore it.
    Refused,
    /// Data is damaged, or the server does not support such statements.
    Unfit,
}

/// One kind of database, and how to connect to it: its URL, and the timeout of lock waits.
pub(crate) trait Dialect:
    for<'a> TryFrom<(&'a StoreUrl, Duration), Error = OpenError> + Send + Sync + 'static
{
    /// Display name.
    const NAME: &'static str;
    const STATEMENTS: Statements;

    /// A table of segment tags, if this kind of database supports it.
    fn segments(table: SegmentTable) -> Option<&'static SegmentStatements>;

    type Connection: Connection + Send + 'static;
    type Row: Cells + Send + 'static;

    /// `NAME user@host:port/database`.
    fn shown(&self) -> &str;

    /// Opens a connection that commits each statement and requests durable commits.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, sqlx::Error>> + Send;

    /// Inspects the server for use of this table. Refuses one that accepts no changes.
    fn look(
        &self,
        connection: &mut Self::Connection,
        table: &str,
    ) -> impl Future<Output = Result<Look, StoreError>> + Send;

    /// The fault of a table of this kind, as returned by [`Statements::find`].
    fn flaw(kind: &str) -> Option<String>;

    fn run(
        &self,
        connection: &mut Self::Connection,
        statement: Statement,
        values: &[Value],
    ) -> impl Future<Output = Result<Answer<Self::Row>, sqlx::Error>> + Send;

    /// Name and value of those entries of an area that have one of these keys.
    fn get_many(
        &self,
        connection: &mut Self::Connection,
        area: &str,
        keys: &[String],
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send;

    /// Makes many changes with one statement; either all expect an entry, or none does. Changes are in
    /// key order, so that two such statements rarely wait for each other. Returns the keys whose changes
    /// took effect.
    fn put_many(
        &self,
        connection: &mut Self::Connection,
        area: &str,
        puts: &[&Put],
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    fn class(error: &dyn DatabaseError) -> Class;

    /// The error with its number, for people.
    fn said(error: &dyn DatabaseError) -> String;
}

/// Result of inspecting a server.
#[derive(Default)]
pub(crate) struct Look {
    /// The setting by which a crash may undo commits, and the remedy.
    pub(crate) undone: Option<String>,
    /// The server from which this one replicates, for people.
    pub(crate) source: Option<String>,
    /// True if only a later look shows whether it replicates from another server.
    pub(crate) is_unsettled: bool,
    /// Further reasons why it may lose acknowledged changes, above all its replicas. A server that hides
    /// this is a reason, too.
    pub(crate) doubts: Vec<String>,
    /// True if it took over from another server.
    pub(crate) took_over: bool,
    /// Its identity, or that of its cluster.
    pub(crate) server: Option<String>,
    /// The statement that lets this user see the server from which it replicates, if the user may not.
    pub(crate) unseen: Option<String>,
}

/// A statement to send.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Statement {
    /// Returns rows.
    Rows(&'static str),
    /// Returns the number of changed rows.
    Change(&'static str),
}

/// Result of a statement.
pub(crate) struct Answer<R> {
    pub(crate) rows: Vec<R>,
    /// Number of rows inserted, or found by an update.
    pub(crate) changed: u64,
    /// The number that a change has generated, if it is not returned as a row.
    pub(crate) number: Option<i64>,
}

impl<R: Cells> Answer<R> {
    pub(crate) fn first(&self) -> Result<&R, sqlx::Error> {
        self.rows.first().ok_or(sqlx::Error::RowNotFound)
    }

    /// The number that a change has generated; `None` if nothing changed.
    pub(super) fn made(&self) -> Result<Option<i64>, sqlx::Error> {
        match self.rows.first() {
            Some(row) => row.number(0),
            None => Ok(self.number.filter(|_| self.changed > 0)),
        }
    }
}

/// Statements of a dialect. The order of values is the same in each dialect.
pub(crate) struct Statements {
    /// name of a table → its kind, if it exists
    pub(crate) find: Statement,
    pub(crate) table: Table,
    /// area → name, value
    pub(crate) list: Statement,
    /// area, name → value
    pub(crate) get: Statement,
    /// area, name, value
    pub(crate) insert: Statement,
    /// value, area, name, old value
    pub(crate) update: Statement,
    /// → milliseconds since 1970
    pub(crate) now: Statement,
    pub(crate) node_table: Table,
    /// host, port; generates a number
    pub(crate) insert_node: Statement,
    /// → the highest number, or null
    pub(crate) highest_node: Statement,
}

/// A table of segment tags, and its statements.
pub(crate) struct SegmentStatements {
    pub(crate) table: Table,
    /// Distance from the number in the table to the first unused number: 1 if the table has the last one
    /// handed out.
    pub(crate) offset: i64,
    pub(crate) columns: SegmentColumns,
    /// → name, number and step as text, description or null, milliseconds since 1970 or null, number and
    /// step as stored, delta, remainder
    pub(crate) tags: Statement,
    /// step, name, step, and with a stride delta, remainder: adds to the number, unless it is negative or
    /// would become too large, or the stride has changed; returns the new one
    pub(crate) take: Statement,
    /// number, name, old number
    pub(crate) give_back: Statement,
    /// name → number, and with a stride delta, remainder
    pub(crate) max_id: Statement,
    /// → token, and a name for which it is valid
    pub(crate) tokens: Option<Statement>,
    /// name, number, and the existing columns of step, description (possibly empty), delta,
    /// remainder
    pub(crate) create_tag: Statement,
}

impl SegmentStatements {
    /// The statements of Leaf's table for another one with the same columns. They are leaked: a store
    /// is opened once.
    pub(crate) fn of(&self, table: &'static str, changed: &str) -> &'static Self {
        let text = |text: &str| -> &'static str {
            text.replace("update_time", changed)
                .replace(self.table.name, table)
                .leak()
        };
        let of = |statement| match statement {
            Statement::Rows(it) => Statement::Rows(text(it)),
            Statement::Change(it) => Statement::Change(text(it)),
        };
        let create = text(self.table.create);
        let [tags, take, give_back] = [self.tags, self.take, self.give_back].map(of);
        let [max_id, create_tag] = [self.max_id, self.create_tag].map(of);
        let table = Table {
            name: table,
            create,
        };
        Box::leak(Box::new(Self {
            table,
            tags,
            take,
            give_back,
            max_id,
            create_tag,
            ..*self
        }))
    }
}

/// Columns of a table of segment tags, besides name and number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentColumns {
    /// Maximum length of a name.
    pub(crate) key: usize,
    /// True if callers put names into URLs unescaped.
    pub(crate) plain_keys: bool,
    /// `Some` if all tags have this step.
    pub(crate) fixed_step: Option<i64>,
    pub(crate) description: bool,
    pub(crate) stride: bool,
}

impl SegmentColumns {
    /// Columns of Leaf's table.
    pub(crate) const LEAF: Self = Self {
        key: 128,
        plain_keys: false,
        fixed_step: None,
        description: true,
        stride: false,
    };
}

/// A table of Vesta.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) create: &'static str,
}

/// A value of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
    /// As bytes, independent of collation and character set.
    Bytes(Vec<u8>),
}

/// The cells of a row.
pub(crate) trait Cells {
    fn number(&self, column: usize) -> Result<Option<i64>, sqlx::Error>;
    fn text(&self, column: usize) -> Result<Option<String>, sqlx::Error>;
    /// A whole number, parsed from its text, if the raw column has an exact type: a floating point
    /// number would stop growing.
    fn whole(&self, text: usize, raw: usize) -> Result<Option<i64>, sqlx::Error>;
    /// A text stored as bytes.
    fn bytes(&self, column: usize) -> Result<String, sqlx::Error>;
}

impl<R> Cells for R
where
    R: Row,
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    fn number(&self, column: usize) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }

    fn text(&self, column: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }

    fn whole(&self, text: usize, raw: usize) -> Result<Option<i64>, sqlx::Error> {
        let kind = self.try_column(raw)?.type_info().name();
        let exact = kind.contains("INT") || matches!(kind, "DECIMAL" | "NUMERIC");
        Ok(self
            .text(text)?
            .filter(|_| exact)
            .and_then(|text| text.parse().ok()))
    }

    fn bytes(&self, column: usize) -> Result<String, sqlx::Error> {
        String::from_utf8(self.try_get(column)?).map_err(|error| sqlx::Error::Decode(error.into()))
    }
}
