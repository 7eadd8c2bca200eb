//! `sql --gapless`: a table and a statement for numbers without gaps.

use crate::cli::Dialect;

/// The table, and the statement that takes the next number of a name.
pub(super) fn sql(dialect: Dialect) -> String {
    let statement = match dialect {
        Dialect::Postgres => {
            "-- $1: the name, such as 'invoices-2026'\n\
             INSERT INTO vesta_gapless AS its (name, last) VALUES ($1, 1)\n\
             ON CONFLICT (name) DO UPDATE SET last = its.last + 1 RETURNING last;"
        }
        Dialect::Mysql => {
            "-- @name: the name, such as 'invoices-2026'. The number is the statement's insert ID, LAST_INSERT_ID().\n\
             INSERT INTO vesta_gapless (name, last) VALUES (@name, LAST_INSERT_ID(1))\n\
             ON DUPLICATE KEY UPDATE last = LAST_INSERT_ID(last + 1);"
        }
        Dialect::Sqlite => {
            "-- :name: the name, such as 'invoices-2026'\n\
             INSERT INTO vesta_gapless (name, last) VALUES (:name, 1)\n\
             ON CONFLICT (name) DO UPDATE SET last = last + 1 RETURNING last;"
        }
    };
    format!(
        "-- Numbers without gaps: 1, 2, 3, … for each name. Take one in the transaction in which the document becomes\n\
         -- final: if it is rolled back, so is its number. Until it ends, others wait for the next number of the name.\n\
         CREATE TABLE vesta_gapless (name varchar(64) PRIMARY KEY, last bigint NOT NULL);\n\
         {statement}\n"
    )
}
