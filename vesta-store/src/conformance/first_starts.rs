//! A whole fleet that starts at once on an empty pool.

use std::collections::HashSet;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;

use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::KvStore;
use vesta_service::options::Drive;
use vesta_service::testing::Intercept;
use vesta_service::{LocalIdService, MachineSource};

use super::Backend;
use super::world::{LAYOUT, NAMESPACE, SECOND, World};

const STARTERS: usize = 1000;
/// Servers accept a few hundred connections, so some starters share one.
const CONNECTIONS: usize = 50;

/// Each on its own host, by the real clock; the pool has 1,024.
pub(super) fn a_thousand_first_starters_at_once_get_a_thousand_machine_ids_within_30_s(
    backend: &dyn Backend,
) {
    let world = World::new(backend);
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| one_by_one(world.plain()))
        .collect();
    let clock = SystemClock::new();
    let (start, all_started) = (Barrier::new(STARTERS + 1), Barrier::new(STARTERS + 1));
    let (took, machines) = thread::scope(|scope| {
        let starters: Vec<_> = (0..STARTERS)
            .map(|starter| {
                let builder = LocalIdService::builder()
                    .layout(LAYOUT)
                    .namespace(NAMESPACE)
                    .machine(MachineSource::Pool {
                        store: connections[starter % CONNECTIONS].clone(),
                        range: None,
                    })
                    .drive(Drive::ByHand)
                    .state_dir(world.folder(&format!("host{starter}")));
                let (start, all_started) = (&start, &all_started);
                let small = thread::Builder::new().stack_size(256 * 1024);
                let started = small.spawn_scoped(scope, move || {
                    start.wait();
                    let service = builder.build();
                    all_started.wait(); // no machine ID is released before
                    // The error is kept for later: a panic here would block the other threads
                    // forever.
                    service
                        .map(|service| service.machine())
                        .map_err(|error| error.to_string())
                });
                started.expect("a thread")
            })
            .collect();
        start.wait();
        let began = clock.monotonic();
        all_started.wait();
        let took = clock.monotonic() - began;
        let ended = starters.into_iter().map(|it| it.join().expect("no panic"));
        (took, ended.collect::<Vec<_>>())
    });
    println!("{STARTERS} first starters took {took:?}");
    let machines: Result<HashSet<_>, _> = machines.into_iter().collect();
    assert_eq!(machines.map(|machines| machines.len()), Ok(STARTERS));
    assert!(took < 30 * SECOND, "{took:?}");
}

/// One connection with one request at a time: some stores would open another one.
fn one_by_one(store: Arc<dyn KvStore>) -> Arc<dyn KvStore> {
    let turn = Mutex::new(());
    Arc::new(Intercept::new(store, move |request, store| {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        request.send(store)
    }))
}
