//! Expired numbers: those below a rising cutoff.

use super::{Buffer, Chunk, Health};

impl Buffer {
    /// Gives up all numbers below `cutoff`, which no caller may have any more; numbers above it may be available
    /// again. Returns `true` if that changes anything. The caller takes the open chunk away from its users.
    pub(crate) fn skip_below(&mut self, cutoff: u64) -> bool {
        let below = |chunk: &Chunk| chunk.numbers.start < cutoff;
        let open = self.open.as_ref().is_some_and(below);
        if open {
            self.close_chunk();
        }
        let before = self.chunks.len();
        self.chunks.retain(|chunk| !below(chunk));
        let moves = cutoff != self.cutoff;
        if moves {
            self.cutoff = cutoff;
            self.plan.sparing = false;
        }
        let again = moves && self.health == Health::UsedUp;
        if again {
            self.health = Health::Good;
        }
        open || again || self.chunks.len() < before
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::segment::{NextRange, SegmentTag};

    const NOW: Duration = Duration::ZERO;

    fn buffer() -> Buffer {
        let tag = SegmentTag::new("orders", 1, 10);
        Buffer::new(&tag, 1000)
    }

    fn fetch(buffer: &mut Buffer, reply: NextRange) {
        assert!(buffer.next_chunk(NOW).is_err() && buffer.ask(NOW));
        assert!(buffer.begin(NOW).is_some());
        buffer.on_reply(NOW, Ok(reply));
    }

    #[test]
    fn numbers_below_the_cutoff_are_given_up_and_others_stay() {
        let mut buffer = buffer();
        fetch(&mut buffer, NextRange::Numbers(1..11));
        assert_eq!(buffer.next_chunk(NOW).ok(), Some(1..2));
        buffer.on_listed(&SegmentTag::new("orders", 11, 10));
        assert!(buffer.skip_below(100));
        assert!(buffer.next_chunk(NOW).is_err() && !buffer.skip_below(100));
        assert_eq!(
            buffer.closed_total, 1,
            "unissued numbers do not count as used"
        );
        buffer.ask(NOW);
        assert!(buffer.begin(NOW).is_some());
        buffer.on_reply(NOW, Ok(NextRange::Numbers(100..110)));
        assert!(
            !buffer.skip_below(100) && !buffer.skip_below(50),
            "nothing is below"
        );
        assert_eq!(buffer.next_chunk(NOW).ok(), Some(100..101));
    }

    #[test]
    fn a_used_up_tag_asks_once_more_for_another_cutoff() {
        let mut buffer = buffer();
        fetch(&mut buffer, NextRange::UsedUp);
        assert_eq!(buffer.health, Health::UsedUp);
        assert!(
            buffer.skip_below(100),
            "other processes may have used up the expired numbers"
        );
        fetch(&mut buffer, NextRange::UsedUp);
        assert!(!buffer.skip_below(100) && !buffer.ask(NOW) && buffer.health == Health::UsedUp);
        assert!(buffer.skip_below(200) && buffer.ask(NOW));
        assert!(buffer.begin(NOW).is_some());
        buffer.on_reply(NOW, Ok(NextRange::UsedUp));
        assert!(
            buffer.skip_below(150) && buffer.ask(NOW),
            "a clock that was ahead is set right"
        );
    }

    #[test]
    fn numbers_expired_by_a_fast_clock_are_issued_once_it_is_set_right() {
        let mut buffer = buffer();
        fetch(&mut buffer, NextRange::Numbers(1..11));
        assert!(buffer.skip_below(1_000_000), "a year ahead");
        fetch(&mut buffer, NextRange::Numbers(11..21));
        assert!(!buffer.skip_below(1));
        assert_eq!(buffer.next_chunk(NOW).ok(), Some(11..12));
    }

    #[test]
    fn a_reply_for_an_earlier_cutoff_does_not_end_the_current_period() {
        let mut buffer = buffer();
        assert!(buffer.next_chunk(NOW).is_err() && buffer.ask(NOW));
        assert!(buffer.begin(NOW).is_some());
        buffer.skip_below(100);
        buffer.on_reply(NOW, Ok(NextRange::UsedUp));
        assert!(buffer.health == Health::Good && buffer.ask(NOW));
    }
}
