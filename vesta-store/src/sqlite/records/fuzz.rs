//! Rows of arbitrary values: SQLite keeps any type in any column, unless it is told otherwise.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use vesta_service::StoreError;

use super::{Failure, Record, number, record};
use crate::fuzz::{Numbers, fits};

/// As [`super::signed`] and the statements write it.
fn values(record: &Record) -> Option<[Value; 8]> {
    let number = |n: u64| i64::try_from(n).ok().map(Value::Integer);
    Some([
        number(record.epoch)?,
        Value::Blob(record.owner.to_be_bytes().into()),
        number(record.bound)?,
        number(record.attempt)?,
        Value::Integer(record.released.into()),
        Value::Text(record.host.clone()),
        Value::Integer(record.pid.into()),
        number(record.info_time.0)?,
    ])
}

fn read(connection: &Connection, values: &[Value; 8]) -> Result<Record, StoreError> {
    let mut statement =
        connection.prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8").expect("it is right");
    let row = statement.query_row(params_from_iter(values), |row| {
        number(row, 2)?; // as a list reads the machine
        record(row)
    });
    row.map_err(|error| Failure::from(error).explain())
}

/// Any value, or one that belongs there.
fn value((kind, integer, real, bytes): &(u8, i64, u64, Vec<u8>), good: Option<&Value>) -> Value {
    match (kind % 8, good) {
        (0, _) => Value::Null,
        (1, _) => Value::Integer(*integer),
        (2, _) => Value::Real(f64::from_bits(*real)),
        (3, _) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        (4, _) => Value::Blob(bytes.clone()),
        (_, Some(good)) => good.clone(),
        (_, None) => Value::Integer(integer >> 1),
    }
}

#[test]
fn rows_of_any_values() {
    let connection = std::panic::AssertUnwindSafe(Connection::open_in_memory().expect("memory"));
    type Any = (u8, i64, u64, Vec<u8>);
    bolero::check!().with_iterations(10_000).with_type().for_each(
        |(numbers, any, how_many): &(Numbers, [Any; 8], u8)| {
            let good = values(&crate::fuzz::record(numbers));
            let mut columns = std::array::from_fn::<_, 8, _>(|i| {
                value(&any[i], good.as_ref().map(|values| &values[i]))
            });
            if let (Some(good), 0) = (&good, how_many % 3) {
                columns = good.clone();
            }
            match read(&connection, &columns) {
                Ok(record) => {
                    assert!(fits(&record));
                    let written = values(&record).expect("what was read fits");
                    assert_eq!(read(&connection, &written).expect("it is read again"), record);
                }
                Err(error) => assert!(error.is_permanent(), "{error}"),
            }
        },
    );
}
