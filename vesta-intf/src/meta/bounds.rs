//! ID bounds of a time range, for comparisons.

use super::IdMeta;
use crate::Field;
use crate::{Id, IdError, UnixMillis};

impl IdMeta {
    /// An ID of this layout with every field 0 except the type, which is the layout's own. The base
    /// for [`lower_bound`](Self::lower_bound).
    pub fn blank(&self) -> Id {
        Id {
            id_type: self.id_type,
            ..Id::default()
        }
    }

    /// The smallest ID that any generator of this layout can make from `moment` on: no ID below it
    /// belongs to the moment's tick or a later one.
    ///
    /// Version, type and genMethod are above the time, so bounds apply to the IDs that agree in these
    /// fields. They are taken from `base`, whose other fields do not matter: [`blank`](Self::blank), or an
    /// unpacked ID. Where IDs of several generation methods share a table, each method has its own range.
    ///
    /// A bound refers to the time inside the IDs, in whole ticks: with a unit of one second, the bound of
    /// 10:00:00.700 equals that of 10:00:00.000. To select the IDs from `a` up to, but excluding, `b`,
    /// compare `lower_bound(a) <= id && id < lower_bound(b)`.
    ///
    /// ```
    /// use vesta_intf::{GenMethod, Id, IdMeta, UnixMillis};
    ///
    /// let meta = IdMeta::MAX_PEAK;
    /// let base = Id { gen_method: GenMethod::Rest.value(), ..meta.blank() };
    /// let new_year = UnixMillis(1_767_225_600_000); // 2026-01-01T00:00:00Z
    /// let first = meta.lower_bound(new_year, &base)?;
    /// assert_eq!(meta.unpack(first)?.time, 347_184_000);
    /// assert_eq!(meta.upper_bound(UnixMillis(new_year.0 - 1), &base)?, first - 1);
    /// # Ok::<(), vesta_intf::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `time` before the layout's epoch or from its end on, and for a
    /// `layout` that does not sort by time. [`IdError::OutOfRange`] for a field of `base` that does
    /// not fit, or the type of another layout.
    pub fn lower_bound(&self, moment: UnixMillis, base: &Id) -> Result<u64, IdError> {
        self.bound(moment, base, 0, Id::default())
    }

    /// The largest ID that any generator of this layout can make up to `moment`: no ID above it belongs
    /// to the moment's tick or an earlier one. Otherwise like [`lower_bound`](Self::lower_bound).
    /// [`lower_bound`](Self::lower_bound).
    ///
    /// # Errors
    /// As for [`lower_bound`](Self::lower_bound).
    pub fn upper_bound(&self, moment: UnixMillis, base: &Id) -> Result<u64, IdError> {
        let (seq, machine) = (self.max(Field::Seq), self.max(Field::Machine));
        // The last tick of the millisecond, if it has several.
        self.bound(
            moment,
            base,
            self.spec.unit.per_milli() - 1,
            Id {
                seq,
                machine,
                ..*base
            },
        )
    }

    fn bound(&self, moment: UnixMillis, base: &Id, ticks: u64, low: Id) -> Result<u64, IdError> {
        if !self.spec.order.sorts_by_time() {
            let reason = "it sorts by machine before time; its IDs have no bounds by time";
            return Err(IdError::invalid(
                "layout",
                format!("{}: {reason}", self.name),
            ));
        }
        if self.is_vesta() {
            // With another type it would be a bound of the other layout.
            IdError::check("type", base.id_type, self.id_type, self.id_type)?;
        }
        let time = self
            .tick_within(moment)?
            .saturating_add(ticks)
            .min(self.max(Field::Time));
        self.pack(&Id {
            time,
            seq: low.seq,
            machine: low.machine,
            ..*base
        })
    }

    /// The first tick of the millisecond of a moment inside the layout.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for a moment outside of the layout's time.
    pub fn tick_within(&self, moment: UnixMillis) -> Result<u64, IdError> {
        let epoch = self.spec.epoch;
        let tick = match moment.since(epoch) {
            None => Err(format!(
                "{moment} is before {epoch}, where the layout begins"
            )),
            Some(_) if moment >= self.end() => Err(format!(
                "{moment} is not before {}, where the layout ends",
                self.end()
            )),
            Some(since) => Ok(self.spec.unit.ticks_in(since)),
        };
        tick.map_err(|reason| IdError::invalid("time", reason))
    }
}
