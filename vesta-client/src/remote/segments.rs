//! Calls of the segment service.

use tonic::transport::Channel;
use vesta_intf::grpc::v1::{self, segment_service_client::SegmentServiceClient};
use vesta_intf::{IdError, IdRun, MAX_RUN_IDS_PER_CALL};

use super::{Remote, Stub, are_sound, check_count, invalid_response};

type Segments = SegmentServiceClient<Channel>;

impl Stub for Segments {
    fn over(channel: Channel) -> Self {
        Self::new(channel)
    }
}

impl Remote {
    pub(crate) async fn next_id(&self, key: &str) -> Result<u64, IdError> {
        check_key(key)?;
        let request = v1::NextIdRequest { key: key.to_owned() };
        let response = self
            .call(request, |mut stub: Segments, request| async move { stub.next_id(request).await })
            .await?;
        Ok(response.id)
    }

    pub(crate) async fn next_ids(&self, key: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        check_key(key)?;
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        let request = v1::NextIdsRequest { key: key.to_owned(), count };
        let response =
            self.call(request, |mut stub: Segments, request| async move {
                stub.next_ids(request).await
            })
            .await?;
        let runs: Vec<IdRun> = response.runs.into_iter().map(IdRun::from).collect();
        let ids: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        let dense = runs.iter().all(|run| run.step == 1);
        if ids != u64::from(count) || !dense || !are_sound(&runs) {
            return Err(invalid_response("not ascending runs of the requested number of numbers"));
        }
        Ok(runs)
    }
}

/// Maximum length of a segment key in bytes.
const MAX_KEY: usize = 128;

/// Refuses a key that no server accepts.
pub(crate) fn check_key(key: &str) -> Result<(), IdError> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(IdError::invalid("key", "it must have 1 to 128 bytes"));
    }
    Ok(())
}
