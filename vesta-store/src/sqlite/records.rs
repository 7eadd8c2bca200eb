//! Reading and changing rows.

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};
use vesta_service::{Cas, Expect, Namespace, Record, StoreError, UnixMillis};

use super::errors::Failure;

const COLUMNS: &str = "epoch, owner, bound, attempt, released, host, pid, info_time, machine";

pub(super) fn open_namespace(
    connection: &mut Connection,
    name: &str,
    fingerprint: &str,
) -> Result<Namespace, Failure> {
    if let Some(found) = namespace(connection, name)? {
        return Ok(found);
    }
    connection.execute(
        "INSERT INTO vesta_namespace (name, uuid, fingerprint, floor) \
         VALUES (?1, randomblob(16), ?2, 0) ON CONFLICT (name) DO NOTHING",
        params![name, fingerprint],
    )?;
    namespace(connection, name)?.ok_or_else(|| not_opened(name).into())
}

pub(super) fn raise_floor(connection: &Connection, name: &str, floor: u64) -> Result<u64, Failure> {
    connection.execute(
        "UPDATE vesta_namespace SET floor = max(floor, ?2) WHERE name = ?1",
        params![name, signed(floor)?],
    )?;
    Ok(must_exist(connection, name)?.floor)
}

pub(super) fn list(connection: &Connection, name: &str) -> Result<Vec<(u64, Record)>, Failure> {
    must_exist(connection, name)?;
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS} FROM vesta_record WHERE namespace = ?1 ORDER BY machine"
    ))?;
    let rows = statement.query_map([name], |row| Ok((number(row, 8)?, record(row)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn read_opened(
    connection: &Connection,
    name: &str,
    machine: u64,
) -> Result<Option<Record>, Failure> {
    must_exist(connection, name)?;
    read(connection, name, machine)
}

pub(super) fn cas(
    connection: &mut Connection,
    name: &str,
    machine: u64,
    expect: &Expect,
    new: &Record,
) -> Result<Cas, Failure> {
    let key = signed(machine)?;
    let written = [new.epoch, new.bound, new.attempt, new.info_time.0].map(signed);
    let [epoch, bound, attempt, info_time] = written;
    let (epoch, bound, attempt, info_time) = (epoch?, bound?, attempt?, info_time?);
    let owner = new.owner.to_be_bytes();

    // Takes the write lock at once: a transaction that began by reading could not take it later.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let floor = must_exist(&transaction, name)?.floor;
    let changed = transaction.execute(
        "UPDATE vesta_record SET epoch = ?3, owner = ?4, bound = ?5, attempt = ?6, released = ?7, \
         host = ?8, pid = ?9, info_time = ?10 \
         WHERE namespace = ?1 AND machine = ?2 AND epoch = ?11 AND owner = ?12 AND bound = ?13",
        params![
            name,
            key,
            epoch,
            owner,
            bound,
            attempt,
            new.released,
            new.host,
            new.pid,
            info_time,
            signed(expect.epoch)?,
            expect.owner.to_be_bytes(),
            signed(expect.bound)?,
        ],
    )?;
    if changed == 0 {
        let stored = read(&transaction, name, machine)?;
        let absent = stored.is_none();
        let current = stored.unwrap_or_else(|| Record::unclaimed(floor));
        if !absent || !current.meets(expect) {
            return Ok(Cas::Conflict(current));
        }
        transaction.execute(
            "INSERT INTO vesta_record (namespace, machine, epoch, owner, bound, attempt, released, \
             host, pid, info_time) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                name,
                key,
                epoch,
                owner,
                bound,
                attempt,
                new.released,
                new.host,
                new.pid,
                info_time
            ],
        )?;
    }
    transaction.commit()?;
    Ok(Cas::Done)
}

fn read(connection: &Connection, name: &str, machine: u64) -> Result<Option<Record>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM vesta_record WHERE namespace = ?1 AND machine = ?2");
    let found = connection.query_row(&sql, params![name, signed(machine)?], record);
    Ok(found.optional()?)
}

pub(super) fn namespace(connection: &Connection, name: &str) -> Result<Option<Namespace>, Failure> {
    let sql = "SELECT uuid, fingerprint, floor FROM vesta_namespace WHERE name = ?1";
    let found = connection.query_row(sql, [name], |row| {
        Ok(Namespace {
            uuid: u128::from_be_bytes(row.get(0)?),
            fingerprint: row.get(1)?,
            floor: number(row, 2)?,
        })
    });
    Ok(found.optional()?)
}

fn must_exist(connection: &Connection, name: &str) -> Result<Namespace, Failure> {
    namespace(connection, name)?.ok_or_else(|| not_opened(name).into())
}

fn not_opened(name: &str) -> StoreError {
    StoreError::permanent(format!("namespace `{name}` was not opened"))
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        epoch: number(row, 0)?,
        owner: u128::from_be_bytes(row.get(1)?),
        bound: number(row, 2)?,
        attempt: number(row, 3)?,
        released: row.get(4)?,
        host: row.get(5)?,
        pid: row.get(6)?,
        info_time: UnixMillis(number(row, 7)?),
    })
}

/// SQLite's integers have a sign, which none of ours needs.
fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number)
        .map_err(|_| StoreError::permanent(format!("{number} has more than 63 bits")))
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let signed: i64 = row.get(column)?;
    u64::try_from(signed).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, signed))
}

#[cfg(test)]
mod fuzz;
