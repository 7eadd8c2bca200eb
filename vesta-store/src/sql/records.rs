//! Reading and changing rows.

use vesta_service::{Cas, Expect, Namespace, Record, StoreError, UnixMillis};

use super::client::Request;
use super::dialect::{Cells, Dialect, Value};
use super::errors::{Class, Failure, class, contended, not_opened, not_prepared};
use super::tables::prepare;

/// What fits into the column.
const HOST_CHARS: usize = 255;

/// How often a record may become what was expected, after it was found to be something else.
const ROUNDS: u32 = 3;

/// The name of a namespace, as a database can keep it.
#[derive(Debug)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn new(name: &str) -> Result<Self, StoreError> {
        // MySQL takes `a` and `a ` for the same; PostgreSQL knows no NUL.
        if name.ends_with(' ') || name.contains('\0') {
            return Err(StoreError::permanent(format!(
                "namespace {name:?} ends with a blank or contains a NUL; choose another name"
            )));
        }
        Ok(Self(name.into()))
    }

    fn value(&self) -> Value {
        Value::Text(self.0.clone())
    }
}

pub(super) struct OpenNamespace {
    pub(super) name: Name,
    pub(super) fingerprint: String,
    /// Otherwise what is missing is an error.
    pub(super) create: bool,
}

impl<D: Dialect> Request<D> for OpenNamespace {
    type Answer = Namespace;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<Namespace, Failure> {
        prepare::<D>(connection, &D::STATEMENTS.tables, self.create).await?;
        if let Some(found) = find::<D>(connection, &self.name).await? {
            return Ok(found);
        }
        if !self.create {
            return Err(not_prepared(&format!("namespace `{}`", self.name.0)));
        }
        // Not inside the next statement: a copy that repeats it would come to another one.
        let rows = D::fetch(connection, D::STATEMENTS.new_uuid, &[]).await?;
        let uuid = rows.first().ok_or(sqlx::Error::RowNotFound)?.wide(0)?;
        let fingerprint = Value::Text(self.fingerprint.clone());
        let values = [self.name.value(), Value::Wide(uuid), fingerprint];
        match D::execute(connection, D::STATEMENTS.insert_namespace, &values).await {
            // Somebody else was first.
            Err(error) if class::<D>(&error) == Some(Class::Exists) => {}
            made => drop(made?),
        }
        find::<D>(connection, &self.name).await?.ok_or_else(|| not_opened(&self.name.0))
    }
}

async fn find<D: Dialect>(
    connection: &mut D::Connection,
    name: &Name,
) -> Result<Option<Namespace>, Failure> {
    let rows = D::fetch(connection, D::STATEMENTS.find_namespace, &[name.value()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Namespace { uuid: row.wide(0)?, fingerprint: row.text(1)?, floor: row.number(2)? }))
}

pub(super) struct RaiseFloor {
    pub(super) name: Name,
    pub(super) floor: i64,
}

impl<D: Dialect> Request<D> for RaiseFloor {
    type Answer = u64;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<u64, Failure> {
        let values = [Value::Number(self.floor), self.name.value()];
        D::execute(connection, D::STATEMENTS.raise_floor, &values).await?;
        let found = find::<D>(connection, &self.name).await?;
        Ok(found.ok_or_else(|| not_opened(&self.name.0))?.floor)
    }
}

pub(super) struct List {
    pub(super) name: Name,
}

impl<D: Dialect> Request<D> for List {
    type Answer = Vec<(u64, Record)>;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<Self::Answer, Failure> {
        let rows = D::fetch(connection, D::STATEMENTS.list, &[self.name.value()]).await?;
        if rows.is_empty() {
            return Err(not_opened(&self.name.0));
        }
        rows.iter().filter_map(|row| record(row).transpose()).collect()
    }
}

pub(super) struct Read {
    pub(super) name: Name,
    pub(super) machine: i64,
}

impl<D: Dialect> Request<D> for Read {
    type Answer = Option<Record>;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<Self::Answer, Failure> {
        Ok(read::<D>(connection, &self.name, self.machine).await?.1)
    }
}

/// The floor, and the record.
async fn read<D: Dialect>(
    connection: &mut D::Connection,
    name: &Name,
    machine: i64,
) -> Result<(u64, Option<Record>), Failure> {
    let values = [Value::Number(machine), name.value()];
    let rows = D::fetch(connection, D::STATEMENTS.read, &values).await?;
    let row = rows.first().ok_or_else(|| not_opened(&name.0))?;
    Ok((row.number(0)?, record(row)?.map(|(_, record)| record)))
}

/// Replaces a record if it is as expected.
pub(super) struct Change {
    name: Name,
    machine: i64,
    expect: Expect,
    expected: [Value; 3],
    new: [Value; 8],
}

impl Change {
    pub(super) fn new(
        name: Name,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            name,
            machine: signed(machine)?,
            expect: *expect,
            expected: [
                Value::Number(signed(expect.epoch)?),
                Value::Wide(expect.owner),
                Value::Number(signed(expect.bound)?),
            ],
            new: [
                Value::Number(signed(new.epoch)?),
                Value::Wide(new.owner),
                Value::Number(signed(new.bound)?),
                Value::Number(signed(new.attempt)?),
                Value::Flag(new.released),
                Value::Text(fitted(&new.host, HOST_CHARS)),
                Value::Number(new.pid.into()),
                Value::Number(signed(new.info_time.0)?),
            ],
        })
    }

    fn values(&self, parts: [&[Value]; 3]) -> Vec<Value> {
        parts.concat()
    }

    async fn update<D: Dialect>(&self, connection: &mut D::Connection) -> Result<bool, Failure> {
        let key = [self.name.value(), Value::Number(self.machine)];
        let values = self.values([&self.new, &key, &self.expected]);
        Ok(D::execute(connection, D::STATEMENTS.update, &values).await? > 0)
    }

    /// Only if the floor is the expected bound, and while nobody can raise it.
    async fn insert<D: Dialect>(&self, connection: &mut D::Connection) -> Result<bool, Failure> {
        let [_, _, bound] = &self.expected;
        let key = [self.name.value(), bound.clone()];
        let values = self.values([&[Value::Number(self.machine)], &self.new, &key]);
        match D::execute(connection, D::STATEMENTS.insert, &values).await {
            Err(error) if class::<D>(&error) == Some(Class::Exists) => Ok(false),
            inserted => Ok(inserted? > 0),
        }
    }
}

impl<D: Dialect> Request<D> for Change {
    type Answer = Cas;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<Cas, Failure> {
        for _ in 0..ROUNDS {
            if self.update::<D>(connection).await? {
                return Ok(Cas::Done);
            }
            let unclaimed = Record::unclaimed(self.expect.bound).meets(&self.expect);
            if unclaimed && self.insert::<D>(connection).await? {
                return Ok(Cas::Done);
            }
            // Later than what was found not to match.
            let (floor, current) = read::<D>(connection, &self.name, self.machine).await?;
            let current = current.unwrap_or_else(|| Record::unclaimed(floor));
            if !current.meets(&self.expect) {
                return Ok(Cas::Conflict(current));
            }
        }
        Err(contended())
    }
}

pub(super) struct Now;

impl<D: Dialect> Request<D> for Now {
    type Answer = UnixMillis;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<UnixMillis, Failure> {
        let rows = D::fetch(connection, D::STATEMENTS.now, &[]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(UnixMillis(row.number(0)?))
    }
}

/// The machine ID and the record in a row of `list` or `read`.
fn record(row: &impl Cells) -> Result<Option<(u64, Record)>, Failure> {
    if row.is_null(1)? {
        return Ok(None);
    }
    let pid = row.number(8)?;
    let record = Record {
        epoch: row.number(2)?,
        owner: row.wide(3)?,
        bound: row.number(4)?,
        attempt: row.number(5)?,
        released: row.flag(6)?,
        host: row.text(7)?,
        pid: u32::try_from(pid).unwrap_or(u32::MAX), // for people only
        info_time: UnixMillis(row.number(9)?),
    };
    Ok(Some((row.number(1)?, record)))
}

/// The databases' integers have a sign, which none of ours needs.
pub(super) fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number)
        .map_err(|_| StoreError::permanent(format!("{number} has more than 63 bits")))
}

/// As much of a text for people as a column takes.
pub(super) fn fitted(text: &str, chars: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_host_name_is_cut_between_characters() {
        assert_eq!(fitted("häst", 2), "hä");
        assert_eq!(fitted("a\0b", 9), "ab");
        assert_eq!(fitted(&"é".repeat(300), HOST_CHARS).chars().count(), HOST_CHARS);
    }

    #[test]
    fn a_name_that_no_column_keeps_apart_is_refused() {
        assert!(Name::new("a b").is_ok());
        for name in ["a ", " ", "a\0"] {
            let error = Name::new(name).unwrap_err();
            assert!(error.is_permanent() && error.to_string().contains("choose another name"));
        }
    }

    #[test]
    fn numbers_beyond_63_bits_are_refused_and_not_cut() {
        let change = |machine, new: Record| {
            let name = Name::new("ids").unwrap();
            Change::new(name, machine, &Record::unclaimed(0).expect(), &new).map(|_| ())
        };
        change(1, Record::default()).unwrap();
        for (machine, new) in [
            (1 << 63, Record::default()),
            (1, Record { epoch: 1 << 63, ..Record::default() }),
            (1, Record { bound: u64::MAX, ..Record::default() }),
            (1, Record { attempt: 1 << 63, ..Record::default() }),
            (1, Record { info_time: UnixMillis(1 << 63), ..Record::default() }),
        ] {
            let error = change(machine, new).unwrap_err();
            assert!(error.is_permanent() && error.to_string().contains("more than 63 bits"));
        }
    }
}
