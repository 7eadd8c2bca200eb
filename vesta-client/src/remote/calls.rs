//! Calls with checked arguments and checked responses.

use std::collections::HashSet;
use std::time::SystemTime;

use vesta_intf::grpc::v1;
use vesta_intf::{
    Id, IdError, IdRun, MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL, MakeId, ParsedSerial, check_tag,
};

use super::Remote;
use crate::serial::Serial;

impl Remote {
    pub(crate) async fn gen_id(&self) -> Result<u64, IdError> {
        Ok(self.call(v1::GenIdRequest {}).await?.id)
    }

    /// Probes the servers with a single attempt. It costs one ID, which is harmless.
    pub(crate) async fn probe(&self) -> Result<(), IdError> {
        self.attempts(v1::GenIdRequest {}, 1).await.map(|_| ())
    }

    /// IDs in the order of their runs.
    pub(crate) async fn gen_ids(&self, count: u32) -> Result<Vec<u64>, IdError> {
        let mut ids = Vec::with_capacity(count as usize);
        for run in self.gen_runs(count).await? {
            ids.extend(run.iter());
        }
        Ok(ids)
    }

    pub(crate) async fn gen_runs(&self, count: u32) -> Result<Vec<IdRun>, IdError> {
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        checked(self.call(v1::GenRunsRequest { count }).await?.runs, count)
    }

    pub(crate) async fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        Ok(self.call(v1::ExpIdRequest { id: raw }).await?.into())
    }

    pub(crate) async fn make_id(&self, parts: MakeId) -> Result<u64, IdError> {
        Ok(self.call(v1::MakeIdRequest::from(parts)).await?.id)
    }

    pub(crate) async fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        let time = self.call(v1::TransTimeRequest { time }).await?.time;
        time.and_then(|time| SystemTime::try_from(time).ok())
            .ok_or_else(|| invalid_response("a time that this system cannot represent"))
    }

    pub(crate) async fn next_id(&self, tag: &str) -> Result<u64, IdError> {
        check_tag(tag)?;
        Ok(self
            .call(v1::NextIdRequest {
                tag: tag.to_owned(),
            })
            .await?
            .id)
    }

    pub(crate) async fn next_ids(&self, tag: &str, count: u32) -> Result<Vec<IdRun>, IdError> {
        check_tag(tag)?;
        check_count(count, MAX_RUN_IDS_PER_CALL)?;
        let request = v1::NextIdsRequest {
            tag: tag.to_owned(),
            count,
        };
        let runs = checked(self.call(request).await?.runs, count)?;
        if runs.iter().any(|run| run.step != 1) {
            return Err(invalid_response("not runs of consecutive numbers"));
        }
        Ok(runs)
    }

    pub(crate) async fn next_serials(&self, tag: &str, count: u32) -> Result<Vec<Serial>, IdError> {
        check_count(count, MAX_IDS_PER_CALL)?;
        let request = v1::NextSerialsRequest {
            tag: tag.to_owned(),
            count: Some(count),
        };
        let serials = self.call(request).await?.serials;
        let different: HashSet<_> = serials.iter().map(|serial| &*serial.serial).collect();
        if [serials.len(), different.len()] != [count as usize; 2] {
            return Err(invalid_response(
                "not the requested number of different serials",
            ));
        }
        let serials = serials.into_iter();
        Ok(serials
            .map(|v1::Serial { serial, counter }| Serial {
                text: serial,
                counter,
            })
            .collect())
    }

    pub(crate) async fn parse_serial(
        &self,
        tag: &str,
        serial: &str,
    ) -> Result<ParsedSerial, IdError> {
        let request = v1::ParseSerialRequest {
            tag: tag.to_owned(),
            serial: serial.to_owned(),
        };
        let parsed = self.call(request).await.map_err(|error| match error {
            // The protocol does not name the field, but nothing else in the request can be wrong.
            IdError::Invalid { reason, .. } => {
                IdError::invalid("serial", reason.strip_prefix("serial: ").unwrap_or(&reason))
            }
            other => other,
        })?;
        let v1::ParsedSerial {
            period,
            date,
            counter,
            check,
            ..
        } = parsed;
        let check = check.map(|method| method.parse()).transpose();
        let check = check.map_err(|_| invalid_response("an unknown method of check symbols"))?;
        Ok(ParsedSerial {
            date,
            period,
            counter,
            check,
        })
    }
}

/// Refuses a count above the limit of a call. Nothing is clamped.
pub(crate) fn check_count(count: u32, most: u32) -> Result<(), IdError> {
    IdError::check("count", count.into(), 1, most.into())
}

fn invalid_response(what: &str) -> IdError {
    let reason = format!("invalid response from the server: {what}").into();
    IdError::Internal {
        reason,
        source: None,
    }
}

/// The runs, if they are sound and contain as many IDs as requested.
fn checked(runs: Vec<v1::IdRun>, count: u32) -> Result<Vec<IdRun>, IdError> {
    let runs: Vec<_> = runs.into_iter().map(IdRun::from).collect();
    if !are_sound(&runs) {
        return Err(invalid_response("runs that are not sound"));
    }
    let sum: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    if sum != u64::from(count) {
        return Err(invalid_response("not the requested number of ids"));
    }
    Ok(runs)
}

/// True if the runs are in order, within 64 bits and disjoint. They may interleave, because runs of different machine
/// IDs never share an ID.
fn are_sound(runs: &[IdRun]) -> bool {
    let last = |run: &IdRun| {
        let distance = u64::from(run.count).checked_sub(1)?.checked_mul(run.step)?;
        run.first.checked_add(distance)
    };
    let sound = |run: &IdRun| run.step > 0 && last(run).is_some();
    // Runs that reach beyond the first ID of the next one: a run may meet each of them, not only its neighbour.
    let mut open: Vec<&IdRun> = Vec::new();
    runs.iter().all(sound)
        && runs.is_sorted_by(|one, next| one.first < next.first)
        && runs.iter().all(|next| {
            open.retain(|one| last(one) >= Some(next.first));
            let apart = |one: &&IdRun| {
                one.step == next.step && !(next.first - one.first).is_multiple_of(one.step)
            };
            let is_apart = open.iter().all(apart);
            open.push(next);
            is_apart
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disjoint_runs_within_64_bits_are_accepted() {
        let run = |first, step, count| IdRun { first, step, count };
        assert!(are_sound(&[run(1, 2, 3), run(6, 1, 1)]));
        assert!(are_sound(&[run(u64::MAX - 4, 2, 3)]));
        assert!(are_sound(&[run(1, 8, 100), run(2, 8, 100), run(7, 8, 100)]));
        for wrong in [
            &[run(1, 2, 3), run(5, 1, 1)][..],
            &[run(1, 0, 3)],
            &[run(1, 1, 0)],
            &[run(u64::MAX - 3, 2, 3)],
            &[run(u64::MAX, 1, 1), run(1, 1, 1)],
            &[run(1, u64::MAX, 3)],
            &[run(1, 8, 100), run(9, 8, 100)],
            &[run(1, 8, 100), run(4, 2, 100)],
            &[run(1, 8, 100), run(2, 8, 100), run(9, 8, 100)],
        ] {
            assert!(!are_sound(wrong), "{wrong:?}");
        }
    }
}
