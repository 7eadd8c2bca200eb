//! Asynchronous calls of the embedded service.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use vesta_intf::{AsyncIdService, Id, IdError, IdRun, IdService, MakeId, VestaId};

use crate::LocalIdService;
use crate::service::{Batch, Turn, put_in_order};

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
    #[inline(always)]
    pub fn gen_id_async(&self) -> impl Future<Output = Result<u64, IdError>> + Send {
        GenId {
            service: self,
            waiting: None,
        }
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

trait IdToCome: Future<Output = Result<u64, IdError>> + Send {}

impl<F: Future<Output = Result<u64, IdError>> + Send> IdToCome for F {}

/// Future of one ID. Nearly always ready at once: then nothing is allocated, and nothing else is inlined.
struct GenId<'a> {
    service: &'a LocalIdService,
    waiting: Option<Pin<Box<dyn IdToCome + 'a>>>,
}

impl Future for GenId<'_> {
    type Output = Result<u64, IdError>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.waiting {
            None => match self.service.quick() {
                Some(id) => Poll::Ready(Ok(id)),
                None => self.wait(cx),
            },
            Some(_) => self.wait(cx),
        }
    }
}

impl GenId<'_> {
    #[cold]
    #[inline(never)]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, IdError>> {
        let service = self.service;
        let waiting = self.waiting.get_or_insert_with(|| {
            Box::pin(async move {
                let mut turn = Turn::new(service);
                service.wait().until_async(|| turn.id()).await
            })
        });
        waiting.as_mut().poll(cx)
    }
}

impl AsyncIdService for LocalIdService {
    #[inline]
    fn gen_id(&self) -> impl Future<Output = Result<u64, IdError>> + Send {
        self.gen_id_async()
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
