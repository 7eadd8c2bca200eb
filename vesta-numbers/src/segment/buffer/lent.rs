//! Ranges that other systems issue. They are not part of the numbers available here.

use vesta_intf::IdError;

use super::super::store::{LentRange, NextRange};
use super::super::stride::Stride;
use super::{Buffer, Health, not_found};
use vesta_service::lease::StoreError;

impl Buffer {
    /// The step to request, and the end of the ranges that this process has had so far.
    pub(crate) fn before_lending(&self) -> Result<(u64, u64), IdError> {
        match self.ended(self.health) {
            Some(error) => Err(error),
            None => Ok((self.plan.table_step, self.highest.max(self.lent))),
        }
    }

    /// Processes the reply to a request that was made when `above` was the end of this process's ranges. Its
    /// own ranges that come later may be below this one.
    pub(crate) fn on_lent(
        &mut self,
        above: u64,
        reply: Result<NextRange, StoreError>,
    ) -> Result<LentRange, IdError> {
        let (numbers, stride) = match reply {
            Ok(NextRange::Numbers(numbers)) => (numbers, Stride::ONE),
            Ok(NextRange::Strided(numbers, stride)) => (numbers, stride),
            Ok(NextRange::NoTag) => return Err(not_found(&self.key)),
            Ok(NextRange::UsedUp) => {
                return Err(self.ended(Health::UsedUp).expect("it has an end"));
            }
            Err(error) => return Err(self.unavailable(&error, None)),
        };
        self.lent = self.lent.max(numbers.end);
        if numbers.start < above {
            self.settle(Health::WentBack);
        }
        match self.ended(self.health) {
            Some(error) => Err(error),
            None => Ok(LentRange { numbers, stride }),
        }
    }

    /// The end that this host must remember: the store may be above it, but never below.
    pub(crate) fn remembered(&self) -> u64 {
        self.given_out().max(self.lent)
    }
}
