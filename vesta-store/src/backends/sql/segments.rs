//! The table of segment tags: Leaf's `leaf_alloc`.

use std::ops::Range;

use vesta_service::{
    KvStore, NewSegmentTag, NextRange, SegmentStore, SegmentTag, StoreError, UnixMillis,
};

use super::dialect::{Cells, Dialect, Value};
use super::{Sql, explain};
use crate::remote::Remote;

impl<D: Dialect> SegmentStore for Remote<Sql<D>> {
    fn describe(&self) -> String {
        self.shown().into()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let answer = self.run(D::STATEMENTS.tags, Vec::new())?;
        answer.rows.iter().map(tag).collect::<Result<_, _>>().map_err(explain::<D>)
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        let (name, number) = (Value::Text(key.into()), Value::Number(signed(step)?));
        let values = vec![number.clone(), name.clone(), number];
        let taken = self.run(D::STATEMENTS.take, values)?;
        if let Some(end) = taken.made().map_err(explain::<D>)? {
            // Only a trigger or another statement than ours could make it less.
            let range = u64::try_from(end).ok().and_then(|end| Some(end.checked_sub(step)?..end));
            return range.map(NextRange::Numbers).ok_or_else(|| {
                StoreError::permanent(format!("max_id of tag `{key}` did not grow by {step}"))
            });
        }
        let found = self.run(D::STATEMENTS.max_id, vec![name])?;
        let max_id = found.rows.first().map_or(Ok(None), |row| row.number(0));
        match max_id.map_err(explain::<D>)? {
            None => Ok(NextRange::NoTag),
            Some(0..) => Ok(NextRange::UsedUp),
            Some(_) => Err(StoreError::permanent(format!(
                "max_id of tag `{key}` is negative; correct the row"
            ))),
        }
    }

    fn give_back(&self, key: &str, numbers: Range<u64>) -> Result<bool, StoreError> {
        let (start, end) = (signed(numbers.start)?, signed(numbers.end)?);
        let values = vec![Value::Number(start), Value::Text(key.into()), Value::Number(end)];
        Ok(self.run(D::STATEMENTS.give_back, values)?.changed > 0)
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(KvStore::doubt(self)?.map(|doubt| doubt.why))
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        let values = vec![
            Value::Text(tag.key.clone()),
            Value::Number(tag.max_id),
            Value::Number(tag.step),
            Value::Text(tag.description.clone().unwrap_or_default()),
        ];
        Ok(self.run(D::STATEMENTS.create_tag, values)?.changed > 0)
    }
}

fn tag(row: &impl Cells) -> Result<SegmentTag, sqlx::Error> {
    // A row whose numbers are none must not hide the others: what is negative is refused later.
    let number = |text, raw| Ok::<_, sqlx::Error>(row.whole(text, raw)?.unwrap_or(-1));
    Ok(SegmentTag {
        key: row.text(0)?.unwrap_or_default(),
        max_id: number(1, 5)?,
        step: number(2, 6)?,
        description: row.text(3)?,
        update_time: row.number(4)?.and_then(|it| it.try_into().ok()).map(UnixMillis),
    })
}

/// The databases' integers have a sign, which none of ours needs.
fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number)
        .map_err(|_| StoreError::permanent(format!("{number} has more than 63 bits")))
}
