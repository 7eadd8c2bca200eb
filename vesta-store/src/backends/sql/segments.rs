//! Tables of segment tags: Leaf's `leaf_alloc`, Tinyid's `tiny_id_info`, CosId's `cosid`.

use std::fmt;
use std::ops::Range;

use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, Stride};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{KvStore, StoreError};

use super::dialect::{Cells, Dialect, SegmentStatements, Value};
use super::{Sql, explain};
use crate::options::Purpose;
use crate::remote::Remote;
use crate::{OpenError, Options, SegmentTable, StoreUrl, TinyidStore};

/// A table of segment tags in a database.
pub(crate) struct Segments<D: Dialect> {
    database: Remote<Sql<D>>,
    texts: &'static SegmentStatements,
}

impl<D: Dialect> Segments<D> {
    /// Opens the table; `None` if this kind of database does not support it.
    pub(crate) fn open(
        url: &StoreUrl,
        options: &Options,
        table: SegmentTable,
    ) -> Result<Option<Self>, OpenError> {
        let Some(texts) = D::segments(table) else {
            return Ok(None);
        };
        let database = Remote::open(url, options, Purpose::SegmentTable(table))?;
        Ok(Some(Self { database, texts }))
    }

    fn tag(&self, row: &D::Row) -> Result<SegmentTag, sqlx::Error> {
        let offset = self.texts.offset;
        // A row with unparsable numbers must not hide the others: negative numbers are refused
        // later.
        let max_id = row
            .whole(1, 5)?
            .filter(|it| *it >= 0)
            .and_then(|it| it.checked_add(offset));
        let step = row.whole(2, 6)?;
        let shown = |number: Option<i64>, column| match number {
            Some(number) => Ok::<_, sqlx::Error>(number.to_string()),
            None => Ok(row.text(column)?.unwrap_or_else(|| "NULL".to_owned())),
        };
        let unusable = max_id.is_none() || step.is_none();
        Ok(SegmentTag {
            key: row.text(0)?.unwrap_or_default(),
            max_id: max_id.unwrap_or(-1),
            step: step.unwrap_or(-1),
            unusable: if unusable {
                Some([shown(max_id, 1)?, shown(step, 2)?])
            } else {
                None
            },
            last: None,
            stride: Self::stride(row, 7)?,
            description: row.text(3)?,
            update_time: row
                .number(4)?
                .and_then(|it| it.try_into().ok())
                .map(UnixMillis),
        })
    }

    /// Delta and remainder, in this column and the next. A value that is not a number gives an
    /// invalid stride.
    fn stride(row: &D::Row, column: usize) -> Result<Stride, sqlx::Error> {
        let number =
            |column| Ok::<_, sqlx::Error>(row.number(column)?.and_then(|it| it.try_into().ok()));
        let (delta, remainder) = number(column)?.zip(number(column + 1)?).unwrap_or_default();
        Ok(Stride { delta, remainder })
    }

    /// The stride of a tag; `None` if the tag does not exist.
    fn stride_of(&self, key: &str) -> Result<Option<Stride>, StoreError> {
        if !self.texts.columns.stride {
            return Ok(Some(Stride::ONE));
        }
        let found = self
            .database
            .run(self.texts.max_id, vec![Value::Text(key.into())])?;
        let stride = found
            .rows
            .first()
            .map(|row| Self::stride(row, 1))
            .transpose();
        match stride.map_err(explain::<D>)? {
            Some(stride) if !stride.is_valid() => Err(StoreError::permanent(format!(
                "the row of tag `{key}` needs a delta above 0, and a remainder below that"
            ))),
            stride => Ok(stride),
        }
    }

    /// A number as stored in the table.
    fn in_table(&self, number: u64) -> Result<i64, StoreError> {
        Ok(signed(number)? - self.texts.offset)
    }

    /// Delta and remainder, if the table has columns for them.
    fn columns_of(&self, stride: Stride) -> Result<Vec<Value>, StoreError> {
        if !self.texts.columns.stride {
            return Ok(Vec::new());
        }
        let columns = [stride.delta, stride.remainder];
        columns
            .into_iter()
            .map(|number| Ok(Value::Number(signed(number)?)))
            .collect()
    }

    /// The fault of a tag that this table cannot represent.
    fn flaw(&self, tag: &NewSegmentTag) -> Option<String> {
        let (table, columns) = (self.texts.table.name, self.texts.columns);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        Some(match columns.fixed_step {
            _ if tag.key.chars().count() > columns.key => {
                format!(
                    "a name in the table {table} has at most {} characters",
                    columns.key
                )
            }
            _ if columns.plain_keys && !tag.key.chars().all(is_plain) => format!(
                "callers put names of the table {table} into URLs as they are: use letters, digits, \
                 `-`, `_`, `.` and `~`"
            ),
            _ if tag.last.is_some() => format!(
                "the table {table} has no column for a last number; take segment.table = kv"
            ),
            _ if tag.description.is_some() && !columns.description => {
                format!("the table {table} has no descriptions; remove it")
            }
            _ if tag.max_id < self.texts.offset => {
                format!("the first number in the table {table} is 1 or more")
            }
            Some(step) if step != tag.step => {
                format!("the table {table} has no steps: each tag has one of {step}")
            }
            _ => return None,
        })
    }
}

impl<D: Dialect> fmt::Debug for Segments<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.texts.table.name)
            .field(&self.database)
            .finish()
    }
}

impl<D: Dialect> TinyidStore for Segments<D> {
    fn tokens(&self) -> Result<Vec<(String, String)>, StoreError> {
        let Some(tokens) = self.texts.tokens else {
            return Ok(Vec::new());
        };
        let table = vec![Value::Text("tiny_id_token".into())];
        if self
            .database
            .run(D::STATEMENTS.find, table)?
            .rows
            .is_empty()
        {
            return Err(StoreError::permanent("the table does not exist"));
        }
        let answer = self.database.run(tokens, Vec::new())?;
        let token = |row: &D::Row| {
            let [token, key] = [row.text(0)?, row.text(1)?].map(Option::unwrap_or_default);
            Ok((token.trim().to_owned(), key.trim().to_owned()))
        };
        answer
            .rows
            .iter()
            .map(token)
            .collect::<Result<_, _>>()
            .map_err(explain::<D>)
    }
}

impl<D: Dialect> SegmentStore for Segments<D> {
    /// Includes the table unless it is the default one, because the host's local record of tags is per
    /// table.
    fn describe(&self) -> String {
        let (shown, table) = (self.database.shown(), self.texts.table.name);
        if table == "leaf_alloc" {
            shown.into()
        } else {
            format!("{shown} ({table})")
        }
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let answer = self.database.run(self.texts.tags, Vec::new())?;
        let tags = answer.rows.iter().map(|row| self.tag(row));
        tags.collect::<Result<_, _>>().map_err(explain::<D>)
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        let Some(stride) = self.stride_of(key)? else {
            return Ok(NextRange::NoTag);
        };
        // A range smaller than the stride might contain none of its numbers.
        let step = step.max(stride.delta);
        let (name, number) = (Value::Text(key.into()), Value::Number(signed(step)?));
        let mut values = vec![number.clone(), name.clone(), number];
        values.extend(self.columns_of(stride)?);
        let taken = self.database.run(self.texts.take, values)?;
        if let Some(end) = taken.made().map_err(explain::<D>)? {
            // Only a trigger or a foreign statement could lower it.
            let end = end
                .checked_add(self.texts.offset)
                .and_then(|end| u64::try_from(end).ok());
            let range = end
                .and_then(|end| Some(end.checked_sub(step)?..end))
                .ok_or_else(|| {
                    StoreError::permanent(format!("max_id of tag `{key}` did not grow by {step}"))
                })?;
            return Ok(NextRange::of(range, stride));
        }
        let found = self.database.run(self.texts.max_id, vec![name])?;
        let max_id = found.rows.first().map_or(Ok(None), |row| row.number(0));
        match max_id.map_err(explain::<D>)? {
            None => Ok(NextRange::NoTag),
            Some(..0) => Err(StoreError::permanent(format!(
                "max_id of tag `{key}` is negative; correct the row"
            ))),
            Some(max_id) if signed(step)? > i64::MAX - self.texts.offset - max_id => {
                Ok(NextRange::UsedUp)
            }
            Some(_) => Err(StoreError::unavailable(
                format!("delta and remainder of tag `{key}` have just been changed"),
                std::io::Error::other("the row is read again"),
            )),
        }
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        let (start, end) = (self.in_table(numbers.start)?, self.in_table(numbers.end)?);
        let values = vec![
            Value::Number(start),
            Value::Text(key.into()),
            Value::Number(end),
        ];
        Ok(self.database.run(self.texts.give_back, values)?.changed > 0)
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(KvStore::doubt(&self.database)?.map(|doubt| doubt.why))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        if let Some(flaw) = self.flaw(tag) {
            return Err(StoreError::permanent(flaw));
        }
        let columns = self.texts.columns;
        let mut values = vec![
            Value::Text(tag.key.clone()),
            Value::Number(tag.max_id - self.texts.offset),
        ];
        if columns.fixed_step.is_none() {
            values.push(Value::Number(tag.step));
        }
        if columns.description {
            values.push(Value::Text(tag.description.clone().unwrap_or_default()));
        }
        values.extend(self.columns_of(Stride::ONE)?);
        Ok(self.database.run(self.texts.create_tag, values)?.changed > 0)
    }
}

/// Converts a number to the signed integer of the databases.
fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number)
        .map_err(|_| StoreError::permanent(format!("{number} has more than 63 bits")))
}
