//! IDs issued per second in the last two minutes, behind `/status`.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::answers::Rate;
use crate::ticks::millis;

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(2);

/// How far back the rates go.
const SPAN: Duration = Duration::from_secs(120);

/// Rates between successive samples of a counter.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// Time and counter of the last sample.
    last: Option<(Instant, u64)>,
    /// The rates, each with the time of its later sample.
    known: VecDeque<(Instant, f64)>,
}

impl Rates {
    /// Takes a sample. After a pause it yields no rate: an average would hide that the time in between is unknown.
    fn sample(&mut self, now: Instant, issued: u64) {
        if let Some((then, before)) = self.last.replace((now, issued)) {
            let elapsed = now - then;
            if !elapsed.is_zero() && elapsed < 2 * EVERY {
                let rate = issued.saturating_sub(before) as f64 / elapsed.as_secs_f64();
                self.known.push_back((now, (rate * 100.0).round() / 100.0));
            }
        }
        self.known.retain(|(at, _)| is_recent(*at, now));
    }

    /// The known rates, the oldest first.
    pub(super) fn recent(&self, now: Instant) -> Vec<Rate> {
        let recent = self.known.iter().filter(|(at, _)| is_recent(*at, now));
        let rate = |(at, per_second): &(Instant, f64)| Rate {
            age_ms: millis(now - *at),
            per_second: *per_second,
        };
        recent.map(rate).collect()
    }
}

/// True if all of the time before this sample is within the span.
fn is_recent(at: Instant, now: Instant) -> bool {
    now - at <= SPAN - EVERY
}

/// Samples a counter of issued IDs, for as long as it is polled.
pub(super) async fn watch(rates: &Mutex<Rates>, issued: impl Fn() -> u64) -> ! {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let issued = issued();
        rates.lock().sample(Instant::now(), issued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples at these seconds of a counter that grows by ten a second, and the ages and rates known at the last one.
    fn known(seconds: impl IntoIterator<Item = u64>) -> Vec<(u64, f64)> {
        let (began, mut rates, mut now) = (Instant::now(), Rates::default(), Instant::now());
        for second in seconds {
            now = began + Duration::from_secs(second);
            rates.sample(now, 10 * second);
        }
        let known = rates.recent(now).into_iter();
        known.map(|it| (it.age_ms, it.per_second)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_has_the_rates_of_its_own_time() {
        assert_eq!(known([]), []);
        assert_eq!(known([0]), []);
        assert_eq!(known([0, 2, 4]), [(2_000, 10.0), (0, 10.0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_a_gap() {
        let rates = [(34_000, 10.0), (32_000, 10.0), (0, 10.0)];
        assert_eq!(known([0, 2, 4, 34, 36]), rates);
        // A late sample is no pause.
        assert_eq!(known([0, 2, 5, 7]).len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn rates_older_than_two_minutes_are_forgotten() {
        let rates = known((0..1_000).step_by(2));
        assert_eq!((rates.len(), rates[0]), (60, (118_000, 10.0)));
        // Without new samples, too.
        let (began, mut rates) = (Instant::now(), Rates::default());
        rates.sample(began, 0);
        rates.sample(began + EVERY, 1);
        assert_eq!(rates.recent(began + SPAN).len(), 1);
        assert_eq!(rates.recent(began + SPAN + EVERY).len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn few_ids_are_not_rounded_to_none() {
        let (began, mut rates) = (Instant::now(), Rates::default());
        rates.sample(began, 7);
        rates.sample(began + Duration::from_secs(3), 8);
        assert_eq!(rates.recent(began + EVERY * 2)[0].per_second, 0.33);
    }
}
