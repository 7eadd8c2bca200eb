//! Positions: time and sequence number as one number. The IDs of a machine ID are reserved by their positions.

use super::IdMeta;
use crate::{Id, IdError, UnixMillis};

impl IdMeta {
    /// The position of an ID of this layout.
    pub const fn position_of(&self, id: &Id) -> u64 {
        id.time << self.spec.seq_bits | id.seq
    }

    /// The first position of the tick that contains a moment.
    ///
    /// # Errors
    /// As for [`tick_at`](Self::tick_at).
    pub fn position_at(&self, moment: UnixMillis) -> Result<u64, IdError> {
        Ok(self.tick_at(moment)? << self.spec.seq_bits)
    }

    /// The moment at which the tick of a position begins; for a position beyond the layout, the layout's end.
    pub fn moment_at(&self, position: u64) -> UnixMillis {
        self.moment_of(position >> self.spec.seq_bits)
            .unwrap_or(self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_back_as_the_beginning_of_its_tick() {
        let layout = IdMeta::MAX_PEAK;
        let begin = UnixMillis(1_767_225_600_000);
        let position = layout.position_at(UnixMillis(begin.0 + 999)).unwrap();
        assert_eq!(layout.moment_at(position), begin);
        assert_eq!(layout.moment_at(position + 5), begin);
        assert_eq!(layout.moment_at(u64::MAX), layout.end());
        assert!(layout.position_at(UnixMillis(0)).is_err());
        let id = layout.unpack(layout.id_at(0, position + 5)).unwrap();
        assert_eq!(layout.position_of(&id), position + 5);
    }
}
