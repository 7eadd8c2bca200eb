//! One connection that takes as many IDs as it gets: does a layout's whole capacity arrive, and
//! what does the server pay for it?

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use vesta_intf::grpc::v1::{GenIdsRequest, GenRunsRequest, IdRun, StreamIdsRequest};
use vesta_intf::{IdMeta, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL};

use crate::Failure;
use crate::load::{Client, client};
use crate::proc::cpu_seconds;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Ids,
    /// The next call is on its way while the answer to the last one travels back.
    TwoIds,
    Runs,
    Stream,
}

impl Call {
    pub(crate) const ALL: [Call; 4] = [Call::Ids, Call::TwoIds, Call::Runs, Call::Stream];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Call::Ids => "GenIds(10,000)",
            Call::TwoIds => "GenIds(10,000), 2 in flight",
            Call::Runs => "GenRuns(1,048,576)",
            Call::Stream => "StreamIds, chunks of 10,000",
        }
    }
}

/// Some whole ticks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Window {
    pub(crate) ids_per_second: f64,
    /// Of one core, in percent.
    pub(crate) server_cpu: f64,
}

/// So many windows of at least so long each, one after the other on one connection. A window
/// before them does not count.
pub(crate) async fn windows(
    address: SocketAddr,
    pid: u32,
    meta: &IdMeta,
    call: Call,
    rounds: usize,
    length: Duration,
) -> Result<Vec<Window>, Failure> {
    let mut client = client(address).await?;
    let mut meter = Meter::new(meta, length, || cpu_seconds(pid));
    match call {
        Call::Ids | Call::TwoIds => {
            let mut lanes = Lanes::start(&client, if call == Call::TwoIds { 2 } else { 1 });
            while meter.windows.len() <= rounds {
                let (lane, ids) = lanes.next().await?;
                meter.take(lane, &ids, Instant::now())?;
            }
            lanes.end().await;
        }
        Call::Runs => {
            while meter.windows.len() <= rounds {
                let request = GenRunsRequest {
                    count: MAX_RUN_IDS_PER_CALL,
                };
                let runs = client.gen_runs(request).await?.into_inner().runs;
                meter.take(0, &runs, Instant::now())?;
            }
        }
        Call::Stream => {
            let request = StreamIdsRequest {
                chunk: MAX_IDS_PER_CALL,
                total: 0,
            };
            let mut stream = client.stream_ids(request).await?.into_inner();
            while meter.windows.len() <= rounds {
                let ids = stream.message().await?.ok_or("the stream has ended")?.ids;
                meter.take(0, &ids, Instant::now())?;
            }
        }
    }
    Ok(meter.windows.split_off(1))
}

/// Callers of one connection, each of which takes one batch after another.
struct Lanes {
    answers: Receiver<Result<(usize, Vec<u64>), Status>>,
    callers: JoinSet<()>,
}

impl Lanes {
    fn start(client: &Client, lanes: usize) -> Self {
        let (send, answers) = channel(1);
        let mut callers = JoinSet::new();
        for lane in 0..lanes {
            let (mut client, send) = (client.clone(), send.clone());
            // Ends when nobody waits for its answers any more.
            callers.spawn(async move {
                let request = GenIdsRequest {
                    count: MAX_IDS_PER_CALL,
                };
                loop {
                    let answer = client.gen_ids(request).await;
                    if send
                        .send(answer.map(|ids| (lane, ids.into_inner().ids)))
                        .await
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
        Self { answers, callers }
    }

    /// Waits for the calls under way: the server would refuse what comes next for their sake.
    async fn end(self) {
        drop(self.answers);
        self.callers.join_all().await;
    }

    async fn next(&mut self) -> Result<(usize, Vec<u64>), Failure> {
        Ok(self
            .answers
            .recv()
            .await
            .ok_or("the callers have ended")??)
    }
}

/// Ascending IDs, not all of which need to exist as numbers.
pub(crate) trait Ascending {
    fn count(&self) -> u64;
    fn at(&self, index: u64) -> u64;
    /// The first and the last ID of each piece. A piece has one machine ID.
    fn pieces(&self) -> impl Iterator<Item = (u64, u64)>;
}

impl Ascending for [u64] {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn at(&self, index: u64) -> u64 {
        self[index as usize]
    }

    fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        self.first().copied().zip(self.last().copied()).into_iter()
    }
}

impl Ascending for Vec<u64> {
    fn count(&self) -> u64 {
        self.as_slice().count()
    }

    fn at(&self, index: u64) -> u64 {
        self.as_slice().at(index)
    }

    fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        self.as_slice().pieces()
    }
}

impl Ascending for Vec<IdRun> {
    fn count(&self) -> u64 {
        self.iter().map(|run| u64::from(run.count)).sum()
    }

    fn at(&self, mut index: u64) -> u64 {
        for run in self {
            match index.checked_sub(run.count.into()) {
                Some(beyond) => index = beyond,
                None => return run.first + index * run.step,
            }
        }
        panic!("there are not so many IDs: {index} beyond the last")
    }

    fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        // The last of an empty run lies before the first, which is an error.
        self.iter().map(|run| {
            (
                run.first,
                run.first + u64::from(run.count) * run.step - run.step,
            )
        })
    }
}

/// Counts the IDs of whole ticks: a layout of seconds gives all that it has at the beginning of
/// each, and a window that cuts through a second would find too many or too few.
pub(crate) struct Meter<'a, C> {
    meta: &'a IdMeta,
    length: Duration,
    /// CPU seconds so far.
    cpu: C,
    /// The last ID of each lane and machine ID. Several machine IDs of one process do not ascend
    /// together.
    last: HashMap<(usize, u64), u64>,
    tick: u64,
    open: Option<(Instant, f64)>,
    counted: u64,
    pub(crate) windows: Vec<Window>,
}

impl<'a, C: FnMut() -> Result<f64, Failure>> Meter<'a, C> {
    pub(crate) fn new(meta: &'a IdMeta, length: Duration, cpu: C) -> Self {
        let (last, tick, counted) = (HashMap::new(), 0, 0);
        Self {
            meta,
            length,
            cpu,
            last,
            tick,
            open: None,
            counted,
            windows: Vec::new(),
        }
    }

    /// These IDs have arrived now. An error if they do not come after all others of the lane with
    /// their machine ID.
    pub(crate) fn take(
        &mut self,
        lane: usize,
        ids: &(impl Ascending + ?Sized),
        now: Instant,
    ) -> Result<(), Failure> {
        let count = ids.count();
        if count == 0 {
            return Err("no IDs came".into());
        }
        for (first, last) in ids.pieces() {
            let before = self
                .last
                .entry((lane, self.meta.unpack(first)?.machine))
                .or_default();
            if first <= *before || last < first {
                return Err(format!("{first} came after {before}").into());
            }
            *before = last;
        }
        let tick = self.meta.unpack(ids.at(count - 1))?.time;
        if tick <= self.tick {
            self.counted += count;
            return Ok(());
        }
        // A new tick has begun in this answer: here a window may end, and the next one begins.
        let before = self.before(tick, ids)?;
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
        self.counted += count - before;
        Ok(())
    }

    /// The number of these IDs that are older than the tick.
    fn before(&self, tick: u64, ids: &(impl Ascending + ?Sized)) -> Result<u64, Failure> {
        let (mut low, mut high) = (0, ids.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.meta.unpack(ids.at(middle))?.time < tick {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    use vesta_intf::Id;

    use super::*;

    const META: IdMeta = IdMeta::MAX_PEAK;

    fn ids(time: u64, seqs: std::ops::Range<u64>) -> Vec<u64> {
        seqs.map(|seq| {
            META.pack(&Id {
                time,
                seq,
                ..Id::default()
            })
            .unwrap()
        })
        .collect()
    }

    #[test]
    fn a_window_has_the_ids_of_whole_ticks() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut cpu = 0.0;
        let mut meter = Meter::new(&META, Duration::from_secs(2), || {
            cpu += 0.25;
            Ok(cpu)
        });
        // The first answer opens a window, in the middle of a tick.
        meter.take(0, &ids(7, 5..10), start).unwrap();
        meter
            .take(0, &[ids(7, 10..12), ids(8, 0..4)].concat(), after(1))
            .unwrap();
        meter.take(0, &ids(8, 4..10), after(1)).unwrap();
        // As runs, the second of which begins in the old tick: of these 10, 3 are the old tick's.
        let first = |seq| {
            META.pack(&Id {
                time: 8,
                seq,
                ..Id::default()
            })
            .unwrap()
        };
        let run = |first, count| IdRun {
            first,
            step: 1 << 10,
            count,
        };
        meter
            .take(
                0,
                &vec![run(first(500), 1), run(first((1 << 20) - 2), 9)],
                after(2),
            )
            .unwrap();
        let ids_per_second = f64::from(5 + 2 + 10 + 3) / 2.0;
        assert_eq!(
            meter.windows,
            [Window {
                ids_per_second,
                server_cpu: 12.5
            }]
        );
        // The other 7 belong to the next window.
        meter.take(0, &ids(11, 0..1), after(4)).unwrap();
        assert_eq!(meter.windows[1].ids_per_second, 3.5);
    }

    #[test]
    fn an_id_that_comes_again_is_an_error() {
        let now = Instant::now();
        let mut meter = Meter::new(&META, Duration::ZERO, || Ok(0.0));
        meter.take(0, &ids(7, 0..10), now).unwrap();
        let error = meter.take(0, &ids(7, 9..20), now).unwrap_err();
        assert!(error.to_string().contains("came after"), "{error}");
        meter.take(1, &ids(7, 10..20), now).unwrap();
    }

    #[test]
    fn runs_ascend_by_machine_id() {
        let run = |machine, time, count| {
            let first = META
                .pack(&Id {
                    time,
                    machine,
                    ..Id::default()
                })
                .unwrap();
            vec![IdRun {
                first,
                step: 1 << 10,
                count,
            }]
        };
        let now = Instant::now();
        let mut meter = Meter::new(&META, Duration::ZERO, || Ok(0.0));
        meter.take(0, &run(1, 8, 10), now).unwrap();
        meter.take(0, &run(2, 7, 10), now).unwrap();
        for wrong in [
            run(1, 8, 1),
            run(2, 7, 20),
            [run(3, 7, 1), run(3, 8, 0)].concat(),
        ] {
            let error = meter.take(0, &wrong, now).unwrap_err();
            assert!(error.to_string().contains("came after"), "{error}");
        }
    }
}
