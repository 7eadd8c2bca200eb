//! Time conversions: moments of positions, and durations as numbers.

use std::time::Duration;

use vesta_intf::{IdError, IdMeta, UnixMillis};
use vesta_service::lease::sequence::Rules;

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Tick converter of a layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickConverter {
    layout: IdMeta,
    rules: Rules,
}

impl TickConverter {
    pub(crate) fn new(layout: IdMeta) -> Self {
        let spec = layout.spec();
        Self {
            layout,
            rules: Rules::new(spec.time_bits, spec.seq_bits, 0),
        }
    }

    pub(crate) const fn layout(&self) -> &IdMeta {
        &self.layout
    }

    /// The first position of the tick that contains a moment.
    ///
    /// # Errors
    /// As [`IdMeta::tick_at`].
    pub(crate) fn position_at(&self, moment: UnixMillis) -> Result<u64, IdError> {
        Ok(self.rules.position(self.layout.tick_at(moment)?))
    }

    /// The moment at which the tick of a position begins; for a position beyond the layout, the
    /// layout's end.
    pub(crate) fn moment_of(&self, position: u64) -> UnixMillis {
        self.layout
            .moment_of(self.rules.tick(position))
            .unwrap_or(self.layout.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_back_as_the_beginning_of_its_tick() {
        let ticks = TickConverter::new(IdMeta::MAX_PEAK);
        let position = ticks
            .position_at(UnixMillis(1_767_225_600_999))
            .expect("inside");
        assert_eq!(ticks.moment_of(position), UnixMillis(1_767_225_600_000));
        assert_eq!(ticks.moment_of(position + 5), UnixMillis(1_767_225_600_000));
        assert_eq!(ticks.moment_of(u64::MAX), IdMeta::MAX_PEAK.end());
        assert!(ticks.position_at(UnixMillis(0)).is_err());
    }
}
