//! A kind of database: its statements, and the way to reach one.

use std::future::Future;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::{Column as _, ColumnIndex, Connection, Decode, Row, Type, TypeInfo as _};
use vesta_service::lease::{Put, StoreError};

use crate::{OpenError, SegmentTable, StoreUrl};

/// The meaning of an error of the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nothing happened, because of what others did at the same time: the same statement may go
    /// through now.
    Contended,
    /// It is there already.
    Exists,
    /// It passes by itself, or an operator sees to it: also whatever is not known.
    Unavailable,
    /// The server takes no changes at the moment.
    ReadOnly,
    /// The password, or the database of the URL: wrong settings.
    Denied,
    /// A privilege or a table is missing; an operator can grant or restore it.
    Refused,
    /// Data are damaged, or the server does not know such statements.
    Unfit,
}

/// A kind of database, and how to reach one: its URL, and the limit of lock waits.
pub(crate) trait Dialect:
    for<'a> TryFrom<(&'a StoreUrl, Duration), Error = OpenError> + Send + Sync + 'static
{
    /// Its name, for people.
    const NAME: &'static str;
    const STATEMENTS: Statements;

    /// A table of segment tags that such a database can have.
    fn segments(table: SegmentTable) -> Option<&'static SegmentStatements>;

    type Connection: Connection + Send + 'static;
    type Row: Cells + Send + 'static;

    /// `NAME user@host:port/database`.
    fn shown(&self) -> &str;

    /// A new connection, which commits each statement, and asks for every commit to be made durable.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, sqlx::Error>> + Send;

    /// Looks at the server for a user of this table. Refuses one that takes no changes.
    fn look(
        &self,
        connection: &mut Self::Connection,
        table: &str,
    ) -> impl Future<Output = Result<Look, StoreError>> + Send;

    /// The flaw of a table of this kind, as [`Statements::find`] names it.
    fn flaw(kind: &str) -> Option<String>;

    fn run(
        &self,
        connection: &mut Self::Connection,
        statement: Statement,
        values: &[Value],
    ) -> impl Future<Output = Result<Answer<Self::Row>, sqlx::Error>> + Send;

    /// Makes many changes with one statement; either all expect an entry, or none does. In the order of
    /// their keys, so that two such statements hardly ever wait for each other. Returns the keys of those
    /// that took effect.
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

/// What a look at a server finds.
#[derive(Default)]
pub(crate) struct Look {
    /// The setting by which a crash may undo commits, and what to do about it.
    pub(crate) undone: Option<String>,
    /// The server whose changes this one takes over, for people.
    pub(crate) source: Option<String>,
    /// True if only a later look shows whether there is such a server.
    pub(crate) is_unsettled: bool,
    /// Further reasons why it may lose changes that it acknowledged, above all its replicas. A server that
    /// does not want to say is one.
    pub(crate) doubts: Vec<String>,
    /// True if it took over from another server.
    pub(crate) took_over: bool,
}

/// A text to send.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Statement {
    /// One whose rows are wanted.
    Rows(&'static str),
    /// One of which it matters how many rows it changed.
    Change(&'static str),
}

/// The outcome of a statement.
pub(crate) struct Answer<R> {
    pub(crate) rows: Vec<R>,
    /// The number of rows that were inserted, or found by an update.
    pub(crate) changed: u64,
    /// The number that a change has just made, where that is not a row.
    pub(crate) number: Option<i64>,
}

impl<R: Cells> Answer<R> {
    pub(crate) fn first(&self) -> Result<&R, sqlx::Error> {
        self.rows.first().ok_or(sqlx::Error::RowNotFound)
    }

    /// The number that a change has made; `None` if it changed nothing.
    pub(super) fn made(&self) -> Result<Option<i64>, sqlx::Error> {
        match self.rows.first() {
            Some(row) => row.number(0),
            None => Ok(self.number.filter(|_| self.changed > 0)),
        }
    }
}

/// The texts. The order of the values is the same in each dialect.
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
    /// host, port; makes a number
    pub(crate) insert_node: Statement,
    /// → the highest number, or null
    pub(crate) highest_node: Statement,
}

/// A table of segment tags, and its texts.
pub(crate) struct SegmentStatements {
    pub(crate) table: Table,
    /// From the number in the table to the first that was never handed out: 1 where the table has the last
    /// one that was.
    pub(crate) offset: i64,
    pub(crate) columns: SegmentColumns,
    /// → name, number and step as texts, description or null, milliseconds since 1970 or null, number and
    /// step as they are, delta, remainder
    pub(crate) tags: Statement,
    /// step, name, step, and with a stride delta, remainder: adds to the number unless that is negative or
    /// would become too large, or the stride is another; makes the new one
    pub(crate) take: Statement,
    /// number, name, old number
    pub(crate) give_back: Statement,
    /// name → number, and with a stride delta, remainder
    pub(crate) max_id: Statement,
    /// → token, and a name that it is good for
    pub(crate) tokens: Option<Statement>,
    /// name, number, and what there is of step, description (which may be empty), delta, remainder
    pub(crate) create_tag: Statement,
}

impl SegmentStatements {
    /// The statements of Leaf's table for another one of its shape. They live as long as the process: a
    /// store is opened once.
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

/// The columns of a table of segment tags, besides name and number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentColumns {
    /// The longest name.
    pub(crate) key: usize,
    /// True if callers put names into URLs as they are.
    pub(crate) plain_keys: bool,
    /// `Some` is the one that every tag has.
    pub(crate) fixed_step: Option<i64>,
    pub(crate) description: bool,
    pub(crate) stride: bool,
}

impl SegmentColumns {
    /// Those of Leaf's table.
    pub(crate) const LEAF: Self = Self {
        key: 128,
        plain_keys: false,
        fixed_step: None,
        description: true,
        stride: false,
    };
}

/// A table of ours.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) create: &'static str,
}

/// A value for a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
    /// As bytes: no collation, no character set.
    Bytes(Vec<u8>),
}

/// The cells of a row.
pub(crate) trait Cells {
    fn number(&self, column: usize) -> Result<Option<i64>, sqlx::Error>;
    fn text(&self, column: usize) -> Result<Option<String>, sqlx::Error>;
    /// A whole number, from its text, if the raw column is of a type that counts exactly: a floating
    /// point number would come to a standstill.
    fn whole(&self, text: usize, raw: usize) -> Result<Option<i64>, sqlx::Error>;
    /// A text that is kept as bytes.
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
