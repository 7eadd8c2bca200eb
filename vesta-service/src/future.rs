//! `AsyncIdService` for the embedded service. Needs no runtime: waits go through one timer
//! thread, which sleeps while nobody waits and is right to a fraction of a millisecond, where the
//! timers of runtimes round up to whole ones and would lose every other tick.

use std::time::{Duration, SystemTime};

use futures_timer::Delay;
use vesta_intf::{AsyncIdService, Id, IdError, IdRun, IdService, MakeId};

use crate::LocalIdService;
use crate::backlog::Batch;
use crate::service::put_in_order;

impl LocalIdService {
    /// Repeats an attempt until it succeeds, fails for good, or can no longer succeed in time.
    async fn await_for<T: Send>(
        &self,
        mut attempt: impl FnMut() -> Result<T, IdError> + Send,
    ) -> Result<T, IdError> {
        let mut deadline: Option<Duration> = None;
        loop {
            let error = match attempt() {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let IdError::NotReady(hold) = error else { return Err(error) };
            let now = self.monotonic();
            let deadline = *deadline.get_or_insert(now.saturating_add(self.max_wait()));
            if now.saturating_add(hold.retry_after) > deadline {
                return Err(error);
            }
            self.maintain();
            Delay::new(hold.retry_after).await;
        }
    }
}

impl AsyncIdService for LocalIdService {
    async fn gen_id(&self) -> Result<u64, IdError> {
        self.await_for(|| self.try_gen_id()).await
    }

    async fn gen_ids(&self, count: u32) -> Result<Vec<u64>, IdError> {
        let mut ids = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let mut batch = Batch::new(self, count);
        self.await_for(|| batch.fill(|run| ids.extend(run.iter()))).await??;
        put_in_order(&mut ids);
        Ok(ids)
    }

    async fn gen_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        let mut runs: Vec<IdRun> = Vec::new();
        let mut batch = Batch::new(self, count);
        self.await_for(|| {
            batch.fill(|run| match runs.last_mut() {
                // Across ticks the progression often goes on: one run then says it all.
                Some(last) if last.continues_with(&run) => last.count += run.count,
                _ => runs.push(run),
            })
        })
        .await??;
        runs.sort_unstable_by_key(|run| run.first);
        Ok(runs)
    }

    async fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        IdService::exp_id(self, raw)
    }

    async fn make_id(&self, parts: &MakeId) -> Result<u64, IdError> {
        IdService::make_id(self, parts)
    }

    async fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        IdService::trans_time(self, time)
    }
}
