//! The blocking client, from threads and from inside runtimes.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use vesta_client::{
    Client, ErrorKind, Id, IdError, IdService, MakeId, Prefetch, Retry, VestaId, blocking,
};

use crate::fake::{Fake, Local, Loopback, MACHINES, Reply, ms};

fn plain(server: &Loopback) -> blocking::Client {
    Client::builder()
        .endpoint(server.url())
        .build_blocking()
        .unwrap()
}

#[test]
fn each_call_returns_its_answer() {
    let fake = Fake::new(7);
    let server = Loopback::start(&fake);
    let ids: Arc<dyn IdService> = Arc::new(plain(&server));
    assert_eq!(ids.gen_id().unwrap(), MACHINES + 7);
    let mut out = [0; 3];
    ids.gen_ids(&mut out).unwrap();
    assert_eq!(out, [2, 3, 4].map(|position| position * MACHINES + 7));
    let id = ids.exp_id(5 * MACHINES + 3).unwrap();
    assert_eq!(
        id,
        Id {
            seq: 5,
            machine: 3,
            ..Id::default()
        }
    );
    assert_eq!(ids.make_id(&MakeId::new(0, 5)).unwrap(), 5 * MACHINES + 7);
    let time = ids.trans_time(9).unwrap();
    assert_eq!(time, SystemTime::UNIX_EPOCH + Duration::from_secs(9));

    let calls = fake.calls();
    ids.gen_ids(&mut []).unwrap();
    let error = ids.gen_ids(&mut vec![0; 10_001]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert_eq!(fake.calls(), calls);
}

#[test]
fn without_prefetch_try_calls_are_unsupported() {
    let server = Loopback::start(&Fake::new(1));
    let client = plain(&server);
    for error in [
        client.try_gen_id().unwrap_err(),
        client.try_gen_ids(&mut [0; 2]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("prefetch"), "{error}");
    }
}

#[test]
fn eight_threads_get_unique_ascending_ids() {
    const EACH: usize = 50_000;
    for prefetch in [
        None,
        Some(Prefetch {
            capacity: 4000,
            low_water: 2000,
            ..Prefetch::default()
        }),
    ] {
        let server = Loopback::start(&Fake::new(1));
        let mut builder = Client::builder().endpoint(server.url());
        let each = if prefetch.is_some() { EACH } else { 200 };
        if let Some(prefetch) = prefetch {
            builder = builder.prefetch(prefetch);
        }
        let client = builder.build_blocking().unwrap();
        let lists: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..each).map(|_| client.gen_id().unwrap()).collect()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            lists
                .iter()
                .all(|ids: &Vec<u64>| ids.is_sorted_by(|a, b| a < b))
        );
        let all: HashSet<u64> = lists.into_iter().flatten().collect();
        assert_eq!(all.len(), 8 * each);
    }
}

#[test]
fn batches_and_try_calls_come_from_memory() {
    let fake = Fake::new(1);
    let server = Loopback::start(&fake);
    let prefetch = Prefetch {
        capacity: 1000,
        low_water: 0,
        ..Prefetch::default()
    };
    let client = Client::builder()
        .endpoint(server.url())
        .prefetch(prefetch)
        .build_blocking()
        .unwrap();
    client.next::<VestaId>().unwrap();
    let mut out = [0; 500];
    client.gen_ids(&mut out).unwrap();
    assert!(client.try_gen_id().unwrap() > out[499]);
    let mut out = [0; 600];
    assert_eq!(client.try_gen_ids(&mut out).unwrap(), 498);
    assert_eq!(fake.seen.lock()[0].call, "GenRuns");
    assert!(fake.seen.lock().iter().all(|seen| seen.call == "GenRuns"));
    assert_eq!(client.stats().prefetched_ids, 1000);
}

#[test]
fn the_local_service_covers_an_unreachable_server() {
    let url = Loopback::start(&Fake::new(1)).url();
    let retry = Retry {
        max_attempts: 2,
        ..Retry::default()
    };
    let builder = || Client::builder().endpoint(url.clone()).retry(retry);
    let error = builder().build_blocking().unwrap().gen_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let client = builder()
        .fallback(Arc::new(Local::default()))
        .build_blocking()
        .unwrap();
    assert_eq!(client.gen_id().unwrap() % MACHINES, Local::MACHINE);
    // While in use, it also answers the calls that do not wait.
    assert_eq!(client.try_gen_id().unwrap() % MACHINES, Local::MACHINE);
}

#[test]
fn it_works_inside_runtimes_and_can_be_dropped_there() {
    let server = Loopback::start(&Fake::new(1));
    let single = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let multi = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for runtime in [single, multi] {
        runtime.block_on(async {
            let client = plain(&server);
            assert!(client.gen_id().is_ok());
            drop(client);
            let client = plain(&server);
            let there = client.clone();
            tokio::task::spawn_blocking(move || there.gen_id())
                .await
                .unwrap()
                .unwrap();
            tokio::spawn(async move { client.gen_id() })
                .await
                .unwrap()
                .unwrap();
        });
    }
}

#[test]
fn on_the_servers_own_runtime_it_ends_by_its_deadline() {
    let fake = Fake::new(1);
    fake.always(Reply::Silence);
    let server = Loopback::start(&fake);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let builder = Client::builder().endpoint(server.url()).deadline(ms(100));
        let client = builder.build_blocking().unwrap();
        assert_eq!(
            client.gen_id().unwrap_err().kind(),
            ErrorKind::DeadlineExceeded
        );
    });
}

/// A local service that calls the client that falls back to it.
#[derive(Default)]
struct Circular {
    client: OnceLock<blocking::Client>,
    heard: OnceLock<IdError>,
}

impl IdService for Circular {
    fn try_gen_id(&self) -> Result<u64, IdError> {
        let error = self
            .client
            .get()
            .expect("set before use")
            .gen_id()
            .unwrap_err();
        let _ = self.heard.set(error);
        Ok(1)
    }
    fn gen_id(&self) -> Result<u64, IdError> {
        unreachable!()
    }
    fn gen_ids(&self, _: &mut [u64]) -> Result<(), IdError> {
        unreachable!()
    }
    fn try_gen_ids(&self, _: &mut [u64]) -> Result<usize, IdError> {
        unreachable!()
    }
    fn exp_id(&self, _: u64) -> Result<Id, IdError> {
        unreachable!()
    }
    fn make_id(&self, _: &MakeId) -> Result<u64, IdError> {
        unreachable!()
    }
    fn trans_time(&self, _: u64) -> Result<SystemTime, IdError> {
        unreachable!()
    }
}

#[test]
fn its_background_thread_refuses_to_wait_for_itself() {
    let url = Loopback::start(&Fake::new(1)).url();
    let circular = Arc::new(Circular::default());
    let client = Client::builder()
        .endpoint(url)
        .retry(Retry {
            max_attempts: 1,
            ..Retry::default()
        })
        .fallback(Arc::clone(&circular) as Arc<dyn IdService>)
        .build_blocking()
        .unwrap();
    circular.client.set(client.clone()).unwrap();
    assert_eq!(client.gen_id().unwrap(), 1);
    let heard = circular.heard.get().unwrap();
    assert!(
        heard.to_string().contains("own background thread"),
        "{heard}"
    );
}
