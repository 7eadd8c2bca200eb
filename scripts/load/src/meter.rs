//! Rate of arriving IDs, counted over whole ticks of a layout.

use std::time::Duration;

use tokio::time::Instant;
use vesta_intf::IdMeta;

use crate::Failure;

/// A measurement over whole ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    pub(crate) ids_per_second: f64,
    /// Of one core, in percent.
    pub(crate) server_cpu: f64,
}

/// Counts the IDs of whole ticks. A layout in seconds issues all its IDs at the start of each
/// second, so a window that cuts through one would find too many or too few.
pub(crate) struct Meter<'a, C> {
    meta: &'a IdMeta,
    /// Minimum length of a window.
    length: Duration,
    /// CPU seconds so far.
    cpu: C,
    last: u64,
    tick: u64,
    open: Option<(Instant, f64)>,
    counted: u64,
    pub(crate) windows: Vec<Window>,
}

impl<'a, C: FnMut() -> Result<f64, Failure>> Meter<'a, C> {
    pub(crate) fn new(meta: &'a IdMeta, length: Duration, cpu: C) -> Self {
        Self {
            meta,
            length,
            cpu,
            last: 0,
            tick: 0,
            open: None,
            counted: 0,
            windows: Vec::new(),
        }
    }

    /// Counts IDs of one machine ID that have arrived now, in ascending order. Fails if they do not
    /// follow all others.
    pub(crate) fn take(&mut self, ids: &[u64], now: Instant) -> Result<(), Failure> {
        let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
            return Err("no IDs came".into());
        };
        if first <= self.last || last < first {
            return Err(format!("{first} came after {}", self.last).into());
        }
        self.last = last;
        let tick = self.meta.unpack(last)?.time;
        if tick <= self.tick {
            self.counted += ids.len() as u64;
            return Ok(());
        }
        // A new tick has begun in this answer: a window may end here, and the next one begins.
        let time_of = |id: &u64| self.meta.unpack(*id).map_or(0, |parts| parts.time);
        let before = ids.partition_point(|id| time_of(id) < tick) as u64;
        self.counted += before;
        self.tick = tick;
        let closed = match self.open {
            Some((opened, cpu)) if now - opened >= self.length => {
                let seconds = (now - opened).as_secs_f64();
                self.windows.push(Window {
                    ids_per_second: self.counted as f64 / seconds,
                    server_cpu: ((self.cpu)()? - cpu) / seconds * 100.0,
                });
                true
            }
            Some(_) => false,
            None => true,
        };
        if closed {
            self.open = Some((now, (self.cpu)()?));
            self.counted = 0;
        }
        self.counted += ids.len() as u64 - before;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use vesta_intf::Id;

    use super::*;

    const META: IdMeta = IdMeta::MAX_PEAK;

    fn ids(time: u64, seqs: std::ops::Range<u64>) -> Vec<u64> {
        let id = |seq| Id {
            time,
            seq,
            ..Id::default()
        };
        seqs.map(|seq| META.pack(&id(seq)).unwrap()).collect()
    }

    #[test]
    fn a_window_counts_whole_ticks() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut cpu = 0.0;
        let mut meter = Meter::new(&META, Duration::from_secs(2), || {
            cpu += 0.25;
            Ok(cpu)
        });
        // The first answer opens a window, in the middle of a tick.
        meter.take(&ids(7, 5..10), start).unwrap();
        let over_the_edge = [ids(7, 10..12), ids(8, 0..4)].concat();
        meter.take(&over_the_edge, after(1)).unwrap();
        meter.take(&ids(8, 4..10), after(1)).unwrap();
        // Of these 10, 3 belong to the old tick; the other 7 belong to the next window.
        let over_the_edge = [ids(8, 10..13), ids(9, 0..7)].concat();
        meter.take(&over_the_edge, after(2)).unwrap();
        let ids_per_second = f64::from(5 + 2 + 10 + 3) / 2.0;
        assert_eq!(
            meter.windows,
            [Window {
                ids_per_second,
                server_cpu: 12.5
            }]
        );
        meter.take(&ids(11, 0..1), after(4)).unwrap();
        assert_eq!(meter.windows[1].ids_per_second, 3.5);
    }

    #[test]
    fn a_repeated_id_is_an_error() {
        let now = Instant::now();
        let mut meter = Meter::new(&META, Duration::ZERO, || Ok(0.0));
        meter.take(&ids(7, 0..10), now).unwrap();
        let error = meter.take(&ids(7, 9..20), now).unwrap_err();
        assert!(error.to_string().contains("came after"), "{error}");
    }
}
