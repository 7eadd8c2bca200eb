//! Asynchronous client: prefetch buffer first, then the servers, then the local service.

mod segment;
mod serial;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tokio::runtime::Handle;
use tokio::time::Instant;
use vesta_intf::{
    AsyncIdService, Id, IdError, IdRun, IdService, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL, MakeId,
    VestaId,
};

use crate::fallback::{Fallback, GRACE};
use crate::prefetch::{Prefetch, Prefetcher, Source};
use crate::remote::{Remote, check_count};
use crate::secret::Secret;
use crate::trace::Trace;

pub use segment::Segment;
pub use serial::SerialTag;

/// The asynchronous client of a server. A clone is cheap and shares everything.
///
/// Dropping one of its futures before it is ready loses at most the IDs of that call; other callers
/// and the prefetched IDs are not affected.
///
/// The IDs of one server strictly increase on each machine ID it holds. Between several servers
/// only the time field orders them.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    prefetcher: Option<Prefetcher>,
    remote: Arc<Remote>,
    fallback: Option<Arc<Fallback>>,
    runtime: Handle,
}

/// Statistics of a client since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Calls to the servers, refills included, regardless of the attempts each took.
    pub calls: u64,
    /// Retries of these calls.
    pub retries: u64,
    /// IDs handed out from the prefetch buffer.
    pub prefetched_ids: u64,
    /// IDs in the prefetch buffer now.
    pub prefetched_left: u64,
    /// IDs that expired in the prefetch buffer and were dropped.
    pub stale_ids: u64,
    /// IDs made by the local service.
    pub fallback_ids: u64,
    /// Switches from the servers to the local service and back.
    pub fallback_switches: u64,
    /// True while the local service is in use.
    pub fallback_active: bool,
    /// Error of the last failed attempt, even if the call succeeded later.
    pub last_error: Option<Box<str>>,
}

impl Client {
    pub(crate) fn new(
        remote: Remote,
        prefetch: Option<Prefetch>,
        local: Option<Secret<Arc<dyn IdService>>>,
        runtime: Handle,
    ) -> Self {
        let remote = Arc::new(remote);
        let fallback = local.map(|local| Arc::new(Fallback::new(local)));
        let prefetcher = prefetch.map(|prefetch| {
            Prefetcher::new(
                &prefetch,
                Source::Ids(fallback.clone()),
                Arc::clone(&remote),
                &runtime,
            )
        });
        Self {
            shared: Arc::new(Shared {
                prefetcher,
                remote,
                fallback,
                runtime,
            }),
        }
    }

    /// The source of the headers that continue a caller's trace.
    pub(crate) fn trace(&self) -> Option<Trace> {
        self.shared.remote.trace.clone()
    }

    /// An ID without waiting: from the prefetch buffer, or from the local service while that is in use.
    ///
    /// # Errors
    /// * Empty buffer: the error of the last refill, until the next one starts; otherwise
    ///   [`IdError::NotReady`], as a refill is in progress.
    /// * [`IdError::Unsupported`] without prefetch: there is nothing to wait for.
    #[inline]
    pub fn try_gen_id(&self) -> Result<u64, IdError> {
        match self.take_one() {
            Some(id) => Ok(id),
            None => {
                let mut id = [0];
                self.try_gen_ids(&mut id).map(|_| id[0])
            }
        }
    }

    /// Fills `out` with the IDs available without waiting, ascending, and returns how many.
    ///
    /// # Errors
    /// As for [`try_gen_id`](Self::try_gen_id), if no ID is available.
    pub fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        let taken = self.take_into(out);
        if taken > 0 || out.is_empty() {
            sort(&mut out[..taken]);
            return Ok(taken);
        }
        if let Some(fallback) = self.shared.fallback.as_ref().filter(|f| f.active()) {
            self.probe(fallback);
            return fallback.try_gen_ids(out);
        }
        match &self.shared.prefetcher {
            Some(prefetcher) => Err(prefetcher.why_empty()),
            None => Err(IdError::Unsupported {
                what: "a client without prefetch cannot answer without waiting; build it with \
                       prefetch, or use a call that waits"
                    .into(),
            }),
        }
    }

    /// Statistics since the start of the client.
    pub fn stats(&self) -> Stats {
        let Shared {
            prefetcher,
            remote,
            fallback,
            ..
        } = &*self.shared;
        let stock = prefetcher
            .as_ref()
            .map(|prefetcher| prefetcher.stats())
            .unwrap_or_default();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            calls: count(&remote.counters.calls),
            retries: count(&remote.counters.retries),
            prefetched_ids: stock.handed_out,
            prefetched_left: stock.left,
            stale_ids: stock.stale,
            fallback_ids: fallback.as_ref().map_or(0, |fallback| count(&fallback.ids)),
            fallback_switches: fallback
                .as_ref()
                .map_or(0, |fallback| count(&fallback.switches)),
            fallback_active: fallback.as_ref().is_some_and(|fallback| fallback.active()),
            last_error: remote.counters.last_error.lock().clone(),
        }
    }

    #[inline]
    pub(crate) fn take_one(&self) -> Option<u64> {
        self.shared
            .prefetcher
            .as_ref()?
            .take(1)
            .map(|run| run.first)
    }

    /// Fills the beginning of `out` from the prefetch buffer.
    pub(crate) fn take_into(&self, out: &mut [u64]) -> usize {
        let Some(prefetcher) = &self.shared.prefetcher else {
            return 0;
        };
        let mut filled = 0;
        while filled < out.len() {
            let missing = u32::try_from(out.len() - filled).unwrap_or(u32::MAX);
            let Some(run) = prefetcher.take(missing) else {
                break;
            };
            run.write_to(&mut out[filled..]);
            filled += run.count as usize;
        }
        filled
    }

    /// Slow path of `gen_id`: the prefetch buffer is empty.
    pub(crate) async fn gen_id_slow(&self) -> Result<u64, IdError> {
        let Shared {
            prefetcher, remote, ..
        } = &*self.shared;
        let from_servers = async {
            match prefetcher {
                Some(prefetcher) => {
                    prefetcher
                        .wait_for_one(Instant::now() + remote.deadline)
                        .await
                }
                None => remote.gen_id().await,
            }
        };
        self.or_locally(1, from_servers, |local| local.try_gen_id())
            .await
    }

    /// `count` ascending IDs from the prefetch buffer, if it has as many; fewer if other callers took some first.
    pub(crate) fn take_batch(&self, count: u32) -> Vec<u64> {
        let mut ids = Vec::new();
        if self
            .shared
            .prefetcher
            .as_ref()
            .is_some_and(|m| m.left() >= u64::from(count))
        {
            ids.resize(count as usize, 0);
            let filled = self.take_into(&mut ids);
            ids.truncate(filled);
            sort(&mut ids);
        }
        ids
    }

    /// Completes a batch from the prefetch buffer in one call.
    pub(crate) async fn complete(
        &self,
        mut ids: Vec<u64>,
        count: u32,
    ) -> Result<Vec<u64>, IdError> {
        let missing = count - ids.len() as u32;
        if missing == 0 {
            return Ok(ids);
        }
        let from_servers = self.shared.remote.gen_ids(missing);
        let mut all = self
            .or_locally(missing, from_servers, fill(missing))
            .await?;
        all.append(&mut ids);
        sort(&mut all);
        Ok(all)
    }

    /// Calls the servers, and falls back to the local service if they are unavailable.
    async fn or_locally<T>(
        &self,
        ids: u32,
        from_servers: impl Future<Output = Result<T, IdError>> + Send,
        mut local: impl FnMut(&dyn IdService) -> Result<T, IdError> + Send,
    ) -> Result<T, IdError> {
        let Some(fallback) = &self.shared.fallback else {
            return from_servers.await;
        };
        let deadline = Instant::now() + self.shared.remote.deadline;
        if fallback.active() {
            self.probe(fallback);
            match fallback.run(ids.into(), deadline, &mut local).await {
                // The local service failed: try the servers.
                Err(error) if !matches!(error, IdError::NotReady(_)) => {}
                result => return result,
            }
        }
        let error = match from_servers.await {
            Err(error) if Fallback::covers(&error) => error,
            result => return result,
        };
        fallback.enter(&error);
        let until = deadline.max(Instant::now() + GRACE);
        match fallback.run(ids.into(), until, &mut local).await {
            Err(IdError::NotReady(not_ready)) => Err(IdError::NotReady(not_ready)),
            result => result.map_err(|_| error),
        }
    }

    /// Probes the servers in the background if a probe is due.
    fn probe(&self, fallback: &Arc<Fallback>) {
        if fallback.probe_is_due() {
            let (remote, fallback) = (Arc::clone(&self.shared.remote), Arc::clone(fallback));
            self.shared.runtime.spawn(async move {
                if remote.probe().await.is_ok() {
                    fallback.leave();
                }
            });
        }
    }
}

/// Sorts IDs, as those of different servers and machine IDs need not ascend.
fn sort(ids: &mut [u64]) {
    if !ids.is_sorted() {
        ids.sort_unstable();
    }
}

/// A step that fills a list of `count` IDs, in as many calls as needed.
fn fill(count: u32) -> impl FnMut(&dyn IdService) -> Result<Vec<u64>, IdError> + Send {
    let mut ids = vec![];
    let mut filled = 0;
    move |local| {
        ids.resize(count as usize, 0);
        while filled < ids.len() {
            filled += local.try_gen_ids(&mut ids[filled..])?;
        }
        filled = 0;
        sort(&mut ids);
        Ok(std::mem::take(&mut ids))
    }
}

impl Client {
    /// A new ID, as the type that the program stores: [`VestaId`], `u64`, or its own.
    ///
    /// # Errors
    /// As for [`gen_id`](Self::gen_id).
    pub async fn next<T: From<VestaId>>(&self) -> Result<T, IdError> {
        self.gen_id().await.map(|id| VestaId::from(id).into())
    }

    /// A new ID; ready at once if the prefetch buffer is not empty.
    ///
    /// # Errors
    /// [`IdError::DeadlineExceeded`], and the error of the last attempt.
    #[inline]
    pub async fn gen_id(&self) -> Result<u64, IdError> {
        if let Some(id) = self.take_one() {
            return Ok(id);
        }
        // Boxed, so that the future of the fast path stays small.
        Box::pin(self.gen_id_slow()).await
    }

    /// `count` new IDs, ascending: from the prefetch buffer if it has as many, otherwise in one call.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 10,000; otherwise as for `gen_id`.
    pub async fn gen_ids(&self, count: u32) -> Result<Vec<u64>, IdError> {
        check_count(count, MAX_IDS_PER_CALL)?;
        self.complete(self.take_batch(count), count).await
    }

    /// `count` new IDs as runs. Always calls the servers: callers that take runs do their own prefetching.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] unless `count` is 1 to 1,048,576; otherwise as for `gen_id`.
    pub async fn gen_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        let mut fill = fill(count);
        self.or_locally(count, self.shared.remote.gen_runs(count), |local| {
            fill(local).map(|ids| runs_of(&ids))
        })
        .await
    }

    /// Takes an ID apart: see [`IdService::exp_id`].
    ///
    /// # Errors
    /// As for [`IdService::exp_id`], and those of the call.
    pub async fn exp_id(&self, raw: impl Into<u64>) -> Result<Id, IdError> {
        let raw = raw.into();
        self.or_locally(0, self.shared.remote.exp_id(raw), |local| local.exp_id(raw))
            .await
    }

    /// Assembles an ID from its parts: see [`IdService::make_id`]. Never served by the local service, which
    /// would fill in its own machine ID.
    ///
    /// # Errors
    /// As for [`IdService::make_id`], and those of the call.
    pub async fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        self.shared.remote.make_id(*parts).await
    }

    /// The start time of a tick: see [`IdService::trans_time`].
    ///
    /// # Errors
    /// As for [`IdService::trans_time`], and those of the call.
    pub async fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        self.or_locally(0, self.shared.remote.trans_time(time), |local| {
            local.trans_time(time)
        })
        .await
    }
}

impl AsyncIdService for Client {
    #[inline]
    async fn gen_id(&self) -> Result<u64, IdError> {
        self.gen_id().await
    }

    async fn gen_ids(&self, count: u32) -> Result<Vec<u64>, IdError> {
        self.gen_ids(count).await
    }

    async fn gen_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        self.gen_runs(count).await
    }

    async fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        self.exp_id(raw).await
    }

    async fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        self.make_id(parts).await
    }

    async fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        self.trans_time(time).await
    }
}

/// Ascending IDs as runs.
fn runs_of(ids: &[u64]) -> Vec<IdRun> {
    let mut runs: Vec<IdRun> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some(run) if run.count == 1 => {
                run.step = id - run.first;
                run.count = 2;
            }
            Some(run) if id - run.first == run.step * u64::from(run.count) => run.count += 1,
            _ => runs.push(IdRun {
                first: id,
                step: 1,
                count: 1,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_contain_the_same_ids(
            start in 0_u64..1000,
            gaps in proptest::collection::vec(prop_oneof![Just(1_u64), Just(1024), 1_u64..9], 0..200),
        ) {
            let ids: Vec<u64> = std::iter::once(start)
                .chain(gaps.iter().scan(start, |id, gap| {
                    *id += gap;
                    Some(*id)
                }))
                .collect();
            let runs = runs_of(&ids);
            prop_assert_eq!(runs.iter().flat_map(IdRun::iter).collect::<Vec<_>>(), ids);
        }
    }
}
