//! A local service as a fallback.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use vesta_client::{Id, IdError, IdService, MakeId};
use vesta_intf::{NotReady, NotReadyReason};

use super::MACHINES;

/// A local service whose IDs have machine [`Self::MACHINE`], which no fake server has.
#[derive(Default)]
pub(crate) struct Local {
    position: AtomicU64,
    /// Number of calls that are held for a millisecond each before one succeeds.
    pub(crate) holds: AtomicU64,
    pub(crate) broken: AtomicBool,
}

impl Local {
    pub(crate) const MACHINE: u64 = 1000;
}

impl IdService for Local {
    fn gen_id(&self) -> Result<u64, IdError> {
        panic!("the client must not use a call that waits");
    }

    fn gen_ids(&self, _: &mut [u64]) -> Result<(), IdError> {
        panic!("the client must not use a call that waits");
    }

    fn try_gen_id(&self) -> Result<u64, IdError> {
        let mut id = [0];
        self.try_gen_ids(&mut id).map(|_| id[0])
    }

    /// At most 10 at a time, as at the end of a tick.
    fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(IdError::Sealed {
                reason: "told to".into(),
            });
        }
        let one_less = |n: u64| n.checked_sub(1);
        if self
            .holds
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
        {
            let retry_after = Duration::from_millis(1);
            return Err(NotReady {
                retry_after,
                why: NotReadyReason::SequenceUsedUp,
            }
            .into());
        }
        let made = out.len().min(10);
        for id in &mut out[..made] {
            *id = (1 + self.position.fetch_add(1, Ordering::Relaxed)) * MACHINES + Self::MACHINE;
        }
        Ok(made)
    }

    fn exp_id(&self, raw: u64) -> Result<Id, IdError> {
        Ok(Id {
            machine: raw % MACHINES,
            seq: raw / MACHINES,
            ..Id::default()
        })
    }

    fn make_id(&self, _: &MakeId) -> Result<u64, IdError> {
        panic!("the client must leave make_id to the servers");
    }

    fn trans_time(&self, time: u64) -> Result<SystemTime, IdError> {
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(time))
    }
}
