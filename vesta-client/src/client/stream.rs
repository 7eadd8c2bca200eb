//! Streams of IDs: runs from a server, expanded here.

use std::time::Duration;

use tokio::time::timeout;
use tonic::Streaming;
use vesta_intf::grpc::v1::GenRunsResponse;
use vesta_intf::{IdError, IdRun};

use super::Client;
use crate::endpoints::Order;
use crate::fork;
use crate::remote::{invalid_response, sound};

impl Client {
    /// A stream of `total` new IDs over one connection, for callers that take very many: a server sends runs, a few
    /// dozen bytes for up to 65,536 IDs. Its first call opens it.
    ///
    /// It uses neither the prefetch buffer nor the local service. A server generates the IDs as fast as it can, not as
    /// fast as they are read, so request no more than are needed.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if `total` is 0; [`IdError::Unsupported`] with [`Order::Strict`], because a stream's
    /// IDs were made before they are read.
    pub fn stream(&self, total: u64) -> Result<IdStream, IdError> {
        IdError::check("total", total, 1, u64::MAX)?;
        if self.shared.remote.endpoints.order == Order::Strict {
            let what = "a stream's IDs were made before they are read, which breaks the strict order; use gen_ids";
            return Err(IdError::Unsupported { what: what.into() });
        }
        let (open, runs, rest) = (None, Vec::new().into_iter(), None);
        Ok(IdStream {
            client: self.clone(),
            left: total,
            open,
            runs,
            rest,
        })
    }
}

/// A stream of new IDs, created by [`Client::stream`].
///
/// The IDs of one server strictly increase on each machine ID it holds. A broken stream resumes from another server, or
/// from the same one.
#[derive(Debug)]
pub struct IdStream {
    client: Client,
    /// IDs not received yet.
    left: u64,
    open: Option<Streaming<GenRunsResponse>>,
    runs: std::vec::IntoIter<IdRun>,
    /// Part of a run that [`fill`](Self::fill) had no room for.
    rest: Option<IdRun>,
}

impl IdStream {
    /// The next run of IDs; `None` after the last.
    ///
    /// # Errors
    /// [`IdError::DeadlineExceeded`] if no run came within the client's deadline; otherwise as for
    /// [`gen_id`](vesta_intf::AsyncIdService::gen_id). The next call resumes from there.
    pub async fn next_run(&mut self) -> Result<Option<IdRun>, IdError> {
        fork::check(self.client.shared.remote.process)?;
        loop {
            if let Some(run) = self.rest.take().or_else(|| self.runs.next()) {
                return Ok(Some(run));
            }
            if self.left == 0 {
                return Ok(None);
            }
            self.next_message().await?;
        }
    }

    /// Fills `out` with the next IDs, and returns how many. It is fewer than `out` has room for only at the end of the
    /// stream.
    ///
    /// # Errors
    /// As for [`next_run`](Self::next_run). IDs already taken for `out` are then never used.
    pub async fn fill(&mut self, out: &mut [u64]) -> Result<usize, IdError> {
        let mut filled = 0;
        while filled < out.len() {
            let Some(run) = self.next_run().await? else {
                break;
            };
            run.write_to(&mut out[filled..]);
            let room = u32::try_from(out.len() - filled).unwrap_or(u32::MAX);
            let taken = run.count.min(room);
            self.rest = (taken < run.count).then(|| IdRun {
                first: run.first + u64::from(taken) * run.step,
                count: run.count - taken,
                ..run
            });
            filled += taken as usize;
        }
        Ok(filled)
    }

    async fn next_message(&mut self) -> Result<(), IdError> {
        let remote = &self.client.shared.remote;
        let mut fresh = self.open.is_none();
        loop {
            let open = match &mut self.open {
                Some(open) => open,
                None => self.open.insert(remote.stream_runs(self.left).await?),
            };
            let error = match timeout(remote.deadline, open.message()).await {
                Ok(Ok(Some(message))) => {
                    let (runs, count) = sound(message.runs)?;
                    if count == 0 || count > self.left {
                        self.open = None;
                        return Err(invalid_response("not the requested number of ids"));
                    }
                    (self.runs, self.left) = (runs.into_iter(), self.left - count);
                    return Ok(());
                }
                Ok(Ok(None)) => IdError::Unavailable {
                    reason: "a stream of ids ended early".into(),
                    retry_after: Some(Duration::ZERO),
                    source: None,
                },
                Ok(Err(status)) => remote.broken(status),
                Err(_) => IdError::DeadlineExceeded,
            };
            self.open = None;
            // An open stream may have broken in the meantime; a fresh one fails for its own reasons.
            if std::mem::replace(&mut fresh, true) {
                return Err(error);
            }
        }
    }
}
