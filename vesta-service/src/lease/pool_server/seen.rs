//! The pool server's clock, and how far ahead of it a member may reserve.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::Refusal;
use crate::lease::Namespace;
use crate::number::millis;

/// Longest window of a process, as `machine.window_ms` allows it.
const LONGEST_WINDOW: Duration = Duration::from_secs(600);

/// Maximum distance of a bound, a floor or the reach of a doubt from the pool server's clock: the longest window; a
/// minute by which a member's clock may be ahead; and a minute for IDs ahead of that clock and the distance of a claim
/// under a doubt.
const FURTHEST: Duration = Duration::from_secs(600 + 60 + 60);

/// Facts by which the pool server judges a change.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The namespace as stored, if there is one.
    pub namespace: Option<&'a Namespace>,
    /// The pool server's clock.
    pub now: UnixMillis,
}

/// Parts of a layout's fingerprint that say which moment a position belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positions {
    epoch: UnixMillis,
    unit_micros: u64,
    seq_bits: u32,
    machine_bits: u32,
}

impl Positions {
    /// Reads `1/1/2/41/10/10 tsm 1ms @1767225600000`; `None` if it is not a fingerprint.
    pub(super) fn of(fingerprint: &str) -> Option<Self> {
        let mut parts = fingerprint.split(' ');
        let bits: Vec<u32> = parts
            .next()?
            .split('/')
            .map(|it| it.parse().ok())
            .collect::<Option<_>>()?;
        let [.., seq_bits, machine_bits] = *bits.first_chunk::<6>()?;
        let unit = parts.nth(1)?;
        let (length, micros) = match unit.strip_suffix("us") {
            Some(length) => (length, 1),
            None => (unit.strip_suffix("ms")?, 1000),
        };
        let unit_micros = length
            .parse::<u64>()
            .ok()?
            .checked_mul(micros)
            .filter(|it| *it > 0)?;
        let epoch = UnixMillis(parts.next()?.strip_prefix('@')?.parse().ok()?);
        let fits = bits.len() == 6 && seq_bits < 63 && machine_bits < 63;
        fits.then_some(Self {
            epoch,
            unit_micros,
            seq_bits,
            machine_bits,
        })
    }

    /// True if the layout has this machine ID.
    pub(super) const fn has(&self, machine: u64) -> bool {
        machine >> self.machine_bits == 0
    }

    /// The moment of a position.
    fn moment(&self, position: u64) -> UnixMillis {
        let micros = u128::from(position >> self.seq_bits) * u128::from(self.unit_micros);
        let millis = u64::try_from(micros / 1000).unwrap_or(u64::MAX);
        UnixMillis(self.epoch.0.saturating_add(millis))
    }
}

impl Seen<'_> {
    /// Layout of the namespace.
    pub(super) fn positions(&self) -> Result<Positions, Refusal> {
        let namespace = self
            .namespace
            .ok_or(Refusal::of("its namespace does not exist"))?;
        Positions::of(&namespace.fingerprint).ok_or(Refusal::of(UNKNOWN_LAYOUT))
    }

    /// Refuses a position that lies too far ahead.
    pub(super) fn near(
        &self,
        reason: &'static str,
        positions: Positions,
        position: u64,
    ) -> Result<(), Refusal> {
        self.near_moment(reason, positions.moment(position))
    }

    /// Refuses a moment that lies too far ahead.
    pub(super) fn near_moment(
        &self,
        reason: &'static str,
        moment: UnixMillis,
    ) -> Result<(), Refusal> {
        let furthest = UnixMillis(self.now.0.saturating_add(millis(FURTHEST)));
        if moment <= furthest {
            return Ok(());
        }
        let (minutes, now) = (FURTHEST.as_secs() / 60, self.now);
        let detail = format!(
            ", at {}; a pool_server takes up to {furthest}, {minutes} minutes ahead of its clock, which shows {now}; \
             compare the clocks",
            shown(moment)
        );
        Err(Refusal {
            reason,
            detail,
            for_now: false,
        })
    }

    /// Refuses a window that no setting allows.
    pub(super) fn short(&self, reason: &'static str, window: Duration) -> Result<(), Refusal> {
        if window <= LONGEST_WINDOW {
            return Ok(());
        }
        let detail = format!(": {window:?}; at most {LONGEST_WINDOW:?}");
        Err(Refusal {
            reason,
            detail,
            for_now: false,
        })
    }

    /// Refuses a change of a record that belongs to its owner until its bound has passed.
    pub(super) fn passed(&self, positions: Positions, bound: u64) -> Result<(), Refusal> {
        let until = positions.moment(bound);
        if until <= self.now {
            return Ok(());
        }
        let detail = format!(
            " at {}; the pool_server's clock shows {}",
            shown(until),
            self.now
        );
        Err(Refusal {
            reason: "it belongs to its owner until its bound has passed",
            detail,
            for_now: true,
        })
    }
}

pub(super) const UNKNOWN_LAYOUT: &str = "the layout of its namespace is not one of Vesta";

/// A moment that may lie beyond every calendar.
fn shown(moment: UnixMillis) -> String {
    const YEAR_10_000: u64 = 253_402_300_800_000;
    if moment.0 < YEAR_10_000 {
        moment.to_string()
    } else {
        "the year 10000 or later".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vesta_intf::IdMeta;

    #[test]
    fn positions_of_each_layout_have_the_moments_that_the_layout_gives_them() {
        for meta in IdMeta::PRESETS {
            let positions = Positions::of(&meta.fingerprint()).expect("a fingerprint");
            for tick in [0, 1, 1_000_000] {
                let position = tick << meta.spec().seq_bits;
                let expected = meta.moment_of(tick).expect("within the layout");
                assert_eq!(positions.moment(position), expected, "{meta}");
            }
            assert!(positions.has((1 << meta.spec().machine_bits) - 1));
            assert!(!positions.has(1 << meta.spec().machine_bits));
        }
        for text in [
            "",
            "a layout",
            "1/1/2/41/10 tsm 1ms @0",
            "1/1/2/41/10/10 tsm 0ms @0",
            "1/1/2/41/10/10 tsm 1ms 0",
        ] {
            assert!(Positions::of(text).is_none(), "{text}");
        }
    }
}
