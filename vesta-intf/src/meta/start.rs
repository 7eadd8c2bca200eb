//! Start of the sequence in a new tick.

use std::fmt;
use std::str::FromStr;

use super::IdMeta;
use crate::Field;
use crate::IdError;

/// First sequence number of a new tick. In configurations: `zero`, or `random:N`.
///
/// If ticks have one ID at most, all IDs have the same sequence number, 0. In the order time, machine,
/// sequence they are then all even, and a table that is sharded by the lowest bits of the ID fills one shard
/// only. Leaf therefore starts at a random number below 100. The price: a tick holds up to N − 1 fewer IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SequenceStart {
    /// At 0: every tick has all its sequence numbers.
    #[default]
    Zero,
    /// At a random number from 0 up to, but excluding, this one, which is 1 to the number of
    /// sequence numbers.
    Random(u32),
}

impl SequenceStart {
    /// Exclusive upper bound of the start; 1 for [`Zero`](Self::Zero).
    pub fn below(self) -> u64 {
        match self {
            SequenceStart::Zero => 1,
            SequenceStart::Random(below) => below.into(),
        }
    }

    /// Checks that a tick of this layout can start this way.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `random:0` and for more than the number of sequence numbers of the layout.
    pub fn check(self, meta: &IdMeta) -> Result<(), IdError> {
        let numbers = meta.max(Field::Seq) + 1;
        if (1..=numbers).contains(&self.below()) {
            return Ok(());
        }
        Err(IdError::invalid(
            "sequence_start",
            format!(
                "`{self}` does not fit {}: N of random:N must be 1 to {numbers}, the sequence \
                 numbers of a tick",
                meta.name()
            ),
        ))
    }
}

impl fmt::Display for SequenceStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SequenceStart::Zero => f.write_str("zero"),
            SequenceStart::Random(below) => write!(f, "random:{below}"),
        }
    }
}

impl FromStr for SequenceStart {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let below = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse().ok().filter(|below| *below > 0),
            false => None, // u32::from_str accepts a plus sign
        };
        match text {
            "zero" => Some(SequenceStart::Zero),
            _ => text
                .strip_prefix("random:")
                .and_then(below)
                .map(SequenceStart::Random),
        }
        .ok_or_else(|| {
            IdError::invalid(
                "sequence_start",
                format!("`{text}` is not `zero` or `random:N` with N from 1, such as random:100"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_round_trips_through_its_text() {
        for start in [
            SequenceStart::Zero,
            SequenceStart::Random(1),
            SequenceStart::Random(100),
            SequenceStart::Random(u32::MAX),
        ] {
            assert_eq!(start.to_string().parse::<SequenceStart>().unwrap(), start);
        }
        assert_eq!(
            "random:100".parse::<SequenceStart>().unwrap(),
            SequenceStart::Random(100)
        );
        assert_eq!(SequenceStart::default().below(), 1);
        assert_eq!(SequenceStart::Random(100).below(), 100);
    }

    #[test]
    fn an_invalid_start_is_refused_with_an_example() {
        for text in [
            "",
            "Zero",
            "random",
            "random:",
            "random:0",
            "random:-1",
            "random:+5",
            "random: 5",
            "random:1e3",
            "random:4294967296",
            "random:٣",
            "100",
        ] {
            let error = text.parse::<SequenceStart>().expect_err(text).to_string();
            assert!(
                error.contains("random:100") && error.contains(text),
                "{error}"
            );
        }
    }

    #[test]
    fn a_start_fits_the_sequence_field_of_its_layout() {
        let seq_4096 = IdMeta::SNOWFLAKE;
        for fits in [
            SequenceStart::Zero,
            SequenceStart::Random(1),
            SequenceStart::Random(4096),
        ] {
            fits.check(&seq_4096).unwrap();
        }
        for refused in [0, 4097, u32::MAX] {
            let error = SequenceStart::Random(refused)
                .check(&seq_4096)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("1 to 4096") && error.contains("snowflake"),
                "{error}"
            );
        }
    }
}
