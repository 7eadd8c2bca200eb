//! The home slot of a thread. A service with several machine IDs keeps each thread on one of them, and the
//! initial one depends on the earlier activity of the process. Each history starts with the first one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use vesta_service::contract::UnixMillis;
use vesta_service::lease::StoreError;
use vesta_service::options::{Drive, WorkerNodeStore};
use vesta_service::{IdMeta, LocalIdService, MachineSource};

use super::time::{HostClock, SECOND, Time};

#[derive(Debug, Default)]
struct Numbers(AtomicU64);

impl WorkerNodeStore for Numbers {
    fn describe(&self) -> String {
        "numbers".into()
    }
    fn insert(&self, _: &str, _: u32) -> Result<u64, StoreError> {
        Ok(self.0.fetch_add(1, Relaxed))
    }
}

/// Makes this thread start with the first machine ID of the next service it uses.
pub(crate) fn take_the_first() {
    let time = Time::starting(UnixMillis(1_700_000_000_000), false);
    let service = LocalIdService::builder()
        .layout(IdMeta::MAX_PEAK)
        .machine(MachineSource::Disposable {
            nodes: Arc::<Numbers>::default(),
        })
        .machine_count(2)
        .clock(Arc::new(HostClock::new(&time)))
        .drive(Drive::ByHand)
        .build()
        .expect("it needs nothing");
    let use_up = || {
        let run = service
            .try_gen_run(u32::MAX)
            .expect("two ticks of two machine IDs");
        service.meta().unpack(run.first).expect("its own").machine
    };
    // A thread switches when its own machine ID is used up in a tick.
    if use_up() == 0 {
        use_up();
        time.advance(SECOND);
        use_up();
    }
    assert_eq!(use_up(), 0);
}
