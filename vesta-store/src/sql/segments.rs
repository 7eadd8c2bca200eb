//! The table of segment tags: Leaf's `leaf_alloc`.

use vesta_service::{NewSegmentTag, NextRange, SegmentTag, StoreError, UnixMillis};

use super::client::Request;
use super::dialect::{Cells as _, Dialect, Tables, Value};
use super::errors::{Class, Failure, class};
use super::records::signed;
use super::tables::prepare;

/// The texts. The order of the values is the same in each dialect.
pub(crate) struct SegmentStatements {
    pub(crate) table: Tables,
    /// → biz_tag, max_id, step, description or null, milliseconds since 1970 or null
    pub(crate) tags: &'static str,
    /// step, name, step: adds to `max_id` unless that is negative or would become too large. Returns
    /// the new one where `taken` is `None`.
    pub(crate) take: &'static str,
    /// → the `max_id` that this connection has just made
    pub(crate) taken: Option<&'static str>,
    /// name → max_id
    pub(crate) max_id: &'static str,
    /// name, max_id, step, description, which may be empty
    pub(crate) create: &'static str,
}

pub(super) struct Tags {
    pub(super) create: bool,
}

impl<D: Dialect> Request<D> for Tags {
    type Answer = Vec<SegmentTag>;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<Vec<SegmentTag>, Failure> {
        let statements = &D::STATEMENTS.segments;
        prepare::<D>(connection, &statements.table, self.create).await?;
        let rows = D::fetch(connection, statements.tags, &[]).await?;
        rows.iter()
            .map(|row| {
                let there = |column| row.is_null(column).map(|null| !null);
                let moment = if there(4)? { u64::try_from(row.signed(4)?).ok() } else { None };
                Ok(SegmentTag {
                    key: row.text(0)?,
                    max_id: row.signed(1)?,
                    step: row.signed(2)?,
                    description: there(3)?.then(|| row.text(3)).transpose()?,
                    update_time: moment.map(UnixMillis),
                })
            })
            .collect()
    }
}

pub(super) struct Take {
    pub(super) key: String,
    pub(super) step: u64,
}

impl<D: Dialect> Request<D> for Take {
    type Answer = NextRange;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<NextRange, Failure> {
        let statements = &D::STATEMENTS.segments;
        let (key, step) = (Value::Text(self.key.clone()), Value::Number(signed(self.step)?));
        let values = [step.clone(), key.clone(), step];
        let rows = match statements.taken {
            None => D::fetch(connection, statements.take, &values).await?,
            Some(taken) => match D::execute(connection, statements.take, &values).await? {
                0 => Vec::new(),
                _ => D::fetch(connection, taken, &[]).await?,
            },
        };
        if let Some(row) = rows.first() {
            let end = row.number(0)?;
            // Only a trigger or another statement than ours could make it less.
            let Some(first) = end.checked_sub(self.step) else {
                let said = format!("max_id of tag `{}` did not grow by {}", self.key, self.step);
                return Err(StoreError::permanent(said).into());
            };
            return Ok(NextRange::Numbers(first..end));
        }
        let rows = D::fetch(connection, statements.max_id, &[key]).await?;
        match rows.first().map(|row| row.signed(0)).transpose()? {
            None => Ok(NextRange::NoTag),
            Some(0..) => Ok(NextRange::UsedUp),
            Some(_) => {
                let key = &self.key;
                let said = format!("max_id of tag `{key}` is negative; correct the row");
                Err(StoreError::permanent(said).into())
            }
        }
    }
}

pub(super) struct CreateTag {
    pub(super) create: bool,
    pub(super) tag: NewSegmentTag,
}

impl<D: Dialect> Request<D> for CreateTag {
    type Answer = bool;

    async fn carry_out(&self, connection: &mut D::Connection) -> Result<bool, Failure> {
        let statements = &D::STATEMENTS.segments;
        prepare::<D>(connection, &statements.table, self.create).await?;
        let values = [
            Value::Text(self.tag.key().into()),
            Value::Number(signed(self.tag.first())?),
            Value::Number(signed(self.tag.step())?),
            Value::Text(self.tag.description().unwrap_or_default().into()),
        ];
        match D::execute(connection, statements.create, &values).await {
            Err(error) if class::<D>(&error) == Some(Class::Exists) => Ok(false),
            added => Ok(added? == 1),
        }
    }
}
