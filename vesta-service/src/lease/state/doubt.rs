//! Doubt: windows and distances that survive a store which forgets acknowledged changes. Pure.

use std::time::Duration;

use vesta_intf::UnixMillis;

use super::Plan;
use crate::clock::MAX_LEAD;
use crate::lease::{Amendment, Doubt, Namespace, Timing};
use crate::number::millis;

/// Window under a doubt (with a store that may forget), unless a process announces a longer one.
pub(crate) const USUAL_DOUBTFUL_WINDOW: Duration = Timing::IN_MEMORY.window;
/// Maximum difference between the clocks of two hosts that share a store that may forget: each clock is at
/// most half of it from the store's.
pub(in crate::lease) const MAX_SKEW: Duration = Duration::from_secs(2);
/// Time for which a holder relies on its last check for a doubt. Two thirds of a minute, because it checks
/// only when a renewal is due.
pub(in crate::lease) const DOUBT_CHECK: Duration = Duration::from_secs(40);
/// Time for which the namespace must have shown a window longer than the usual one before a process uses it.
/// A fail-over that forgets the announcement then has to lose that much.
pub(super) const WIDE_AFTER: Duration = Duration::from_secs(600);

impl Plan {
    /// Window in use. Under a doubt windows are short, because claims keep a distance of one window. They
    /// count from the wall clock, while IDs may be ahead of it by up to the lead: a shorter window would end
    /// before it begins. `wide` is true once the namespace has shown the windows of this process for long
    /// enough.
    fn window(&self, doubted: bool, wide: bool) -> Duration {
        let [own, usual] = match doubted {
            true => [
                self.doubtful_window.max(2 * MAX_LEAD),
                USUAL_DOUBTFUL_WINDOW,
            ],
            false => [self.timing.window, self.usual_window],
        };
        if wide { own } else { own.min(usual) }
    }

    /// Interval of renewals: short enough for the window in use.
    pub(super) fn renew_every(&self, doubted: bool, wide: bool) -> Duration {
        let own = self.timing.renew_every;
        let own = own.min(self.window(doubted, wide) / 3);
        if doubted {
            own.min(Timing::IN_MEMORY.renew_every)
        } else {
            own
        }
    }

    pub(crate) fn window_ticks(&self, doubted: bool, wide: bool) -> u64 {
        (millis(self.window(doubted, wide)) / self.meta.spec().unit.millis()).max(1)
    }

    /// Distance ahead of the clock at which a claim begins: beyond every window that the store may have
    /// forgotten. Each of those windows ended at most the longest window ahead of its buyer's clock, or was
    /// bought before the doubt was known and ended before the doubt's reach.
    pub(crate) fn distance(doubt: Option<&Doubt>, wall: UnixMillis) -> Duration {
        doubt.map_or(Duration::ZERO, |doubt| {
            let left = Duration::from_millis(doubt.reach.since(wall).unwrap_or(0));
            (doubt.window.max(USUAL_DOUBTFUL_WINDOW) + MAX_SKEW).max(left)
        })
    }

    /// Doubt to write down where nothing has been reserved yet, with the reason that the store gives. If the
    /// server took over from another one, the doubt's reach covers what the other may have acknowledged.
    pub(crate) fn first_doubt(&self, seen: Option<&Doubt>, wall: UnixMillis) -> Option<Doubt> {
        let why = match self.doubted {
            Some(false) => return None,
            Some(true) => "the settings say so",
            None => seen?.why.as_str(),
        };
        let took_over = seen.is_some_and(|seen| seen.took_over);
        let reach = if took_over {
            self.reach(Duration::ZERO, Duration::ZERO, wall)
        } else {
            wall
        };
        Some(Doubt {
            since: wall,
            reach,
            ..Doubt::of(why, took_over)
        })
    }

    /// End of all windows of processes that do not know of a doubt and buy their last window up to `later`
    /// from now. `announced` is the longest window that the namespace shows.
    fn reach(&self, later: Duration, announced: Duration, wall: UnixMillis) -> UnixMillis {
        let longest = announced.max(self.usual_window).max(self.timing.window);
        let reach = later + longest + MAX_LEAD + MAX_SKEW;
        UnixMillis(wall.0.saturating_add(millis(reach)))
    }

    /// True if a claim now would wait for the reach of this doubt, which may reach nothing. That of a server that took
    /// over stays: claims may be missing.
    pub(crate) fn waits_for_reach(doubt: &Doubt, wall: UnixMillis) -> bool {
        let without = Doubt {
            reach: doubt.since,
            ..doubt.clone()
        };
        !doubt.took_over && Self::distance(Some(doubt), wall) > Self::distance(Some(&without), wall)
    }

    /// Facts that this process adds to a namespace: the windows that it announces before it uses them, the doubt that
    /// it writes down, and the server that it writes to.
    pub(crate) fn facts(
        &self,
        namespace: u128,
        doubt: Option<Doubt>,
        writer: Option<String>,
    ) -> Amendment {
        let unusual = |window: Duration, usual| {
            if window > usual {
                window
            } else {
                Duration::ZERO
            }
        };
        Amendment {
            namespace,
            window: unusual(self.timing.window, self.usual_window),
            doubtful_window: unusual(self.doubtful_window, USUAL_DOUBTFUL_WINDOW),
            doubt,
            writer,
            ..Amendment::default()
        }
    }

    /// Facts that a namespace in use lacks; `None` if it shows them all.
    pub(super) fn missing_from(
        &self,
        of: &Namespace,
        seen: Option<&Doubt>,
        server: Option<&String>,
        wall: UnixMillis,
    ) -> Option<Amendment> {
        // Other processes buy long windows until their next check.
        let doubt = self.first_doubt(seen, wall).filter(|_| of.doubt.is_none());
        let reach = self.reach(DOUBT_CHECK, of.window, wall);
        let doubt = doubt.map(|doubt| Doubt { reach, ..doubt });
        let facts = self.facts(of.uuid, doubt, server.cloned());
        (facts.of(of) != *of).then_some(facts)
    }
}
