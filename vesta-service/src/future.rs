//! The asynchronous calls of the embedded service.

use std::time::SystemTime;

use vesta_intf::{AsyncIdService, Id, IdError, IdRun, IdService, MakeId, VestaId};

use crate::LocalIdService;
use crate::backlog::Batch;
use crate::service::put_in_order;

impl LocalIdService {
    /// [`next`](Self::next) without blocking the thread.
    ///
    /// # Errors
    /// As for [`IdService::gen_id`].
    pub async fn next_async<T: From<VestaId>>(&self) -> Result<T, IdError> {
        self.gen_id_async().await.map(|id| VestaId::from(id).into())
    }

    /// [`gen_id`](Self::gen_id) without blocking the thread.
    ///
    /// # Errors
    /// As for [`IdService::gen_id`].
    pub async fn gen_id_async(&self) -> Result<u64, IdError> {
        self.wait().until_async(|| self.try_gen_id()).await
    }

    /// `count` new IDs, ascending, without blocking the thread.
    ///
    /// # Errors
    /// As for [`IdService::gen_ids`].
    pub async fn gen_ids_async(&self, count: u32) -> Result<Vec<u64>, IdError> {
        let mut ids = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        let mut batch = Batch::new(self, count.into());
        self.wait()
            .until_async(|| batch.fill(|run| ids.extend(run.iter())))
            .await??;
        put_in_order(&mut ids);
        Ok(ids)
    }
}

impl AsyncIdService for LocalIdService {
    async fn gen_id(&self) -> Result<u64, IdError> {
        self.gen_id_async().await
    }

    async fn gen_ids(&self, count: u32) -> Result<Vec<u64>, IdError> {
        self.gen_ids_async(count).await
    }

    async fn gen_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        let mut runs = Vec::new();
        let mut batch = Batch::new(self, count.into());
        self.wait()
            .until_async(|| batch.fill(|run| run.append_to(&mut runs)))
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
