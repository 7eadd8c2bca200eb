//! Two stores behind one URL of a pool server: copies of one, or two different ones. No member may take one for the other.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use vesta_boot::{Auth, Scopes, Token};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{KvStore, Leases, StoreError, Timing, adopt, identity, refusal};
use vesta_service::testing::MemoryStore;
use vesta_service::{LocalIdService, MachineSource};
use vesta_store::{Options, StoreUrl};

use crate::pool_server::{offer, offer_at, open, refused, url};
use crate::support::Server;

const OLDER: &str = "0000000000000001";
const YOUNGER: &str = "0000000000000002";

/// A store with this identity; the numbers above are also its age.
fn store_of(identity: &str) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let age = identity.trim_start_matches('0');
    let text = format!(r#"{{"schema":1,"identity":"{identity}","created":"{age}"}}"#);
    store
        .put_if("pool", "identity", None, &text)
        .expect("memory");
    store
}

fn with_id(login: &str, servers: &[&Server], id: &str) -> StoreUrl {
    let servers: Vec<_> = servers.iter().map(|it| it.address.to_string()).collect();
    let url = format!("vesta://{login}{}?id={id}", servers.join(","));
    url.parse().expect("a URL")
}

/// Looks again after half a second in place of three.
fn quick() -> Options {
    Options {
        request_timeout: Some(Duration::from_millis(500)),
        ..Options::default()
    }
}

fn member(url: &StoreUrl) -> Arc<dyn KvStore> {
    vesta_store::open_with(url, &quick()).expect("it opens")
}

/// A service with the lowest free machine ID, which renews often.
fn service(url: &StoreUrl) -> Result<LocalIdService, vesta_service::BuildError> {
    let folder = vesta_testkit::fast_folder();
    let timing = Timing {
        window: Duration::from_secs(4),
        renew_every: Duration::from_millis(500),
        request_timeout: Duration::from_millis(500),
        ..Timing::NETWORK
    };
    LocalIdService::builder()
        .namespace("orders")
        .machine(MachineSource::Pool {
            store: member(url),
            range: Some(5..=5),
        })
        .timing(timing)
        .max_wait(Duration::ZERO)
        .state_dir(folder.keep())
        .build()
}

/// Waits for what other threads do.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = SystemClock::new();
    let end = clock.monotonic() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock.monotonic() < end, "{what}");
        clock.park(Duration::from_millis(20));
    }
}

/// Two servers, each with its store, and a service of each that started while the other server was away.
struct Two {
    servers: [Server; 2],
    services: [LocalIdService; 2],
}

impl Two {
    fn start(stores: &[Arc<MemoryStore>; 2], ids: [&str; 2]) -> Self {
        let mut servers = [0, 1].map(|at| offer(stores[at].clone(), |_| ()));
        let urls = ids.map(|id| with_id("", &[&servers[0], &servers[1]], id));
        servers[1].stop();
        let first = service(&urls[0]).expect("from the first store");
        servers[0].stop();
        servers[1] = offer_at(servers[1].address, stores[1].clone(), |_| ());
        let second = service(&urls[1]).expect("from the second store");
        servers[0] = offer_at(servers[0].address, stores[0].clone(), |_| ());
        let services = [first, second];
        // The set-up repeats: both have the same machine ID.
        for service in &services {
            service.gen_id().expect("an ID");
            assert_eq!(service.machine(), 5);
        }
        Self { servers, services }
    }
}

#[test]
fn members_of_the_younger_store_stop_and_those_of_the_older_go_on() {
    let stores = [OLDER, YOUNGER].map(store_of);
    let Two {
        mut servers,
        services: [right, wrong],
    } = Two::start(&stores, [OLDER, YOUNGER]);
    let why = until("the younger store is found", || wrong.status().all.sealed);
    assert!(
        why.starts_with("TWO_STORES: ") && why.contains(OLDER),
        "{why}"
    );
    let said = wrong.status().all.not_ready_because.expect("not ready");
    assert!(said.contains("TWO_STORES"), "{said}");
    let events = wrong.events(0);
    assert!(
        events.iter().any(|it| it.kind.name() == "two-stores"),
        "{events:?}"
    );
    let mut seen = HashSet::new();
    for _ in 0..1000 {
        wrong.gen_id().expect_err("no more IDs");
        if let Ok(id) = right.gen_id() {
            assert!(seen.insert(id), "twice");
        }
    }
    assert!(
        !seen.is_empty() && right.status().all.ready,
        "{:?}",
        right.status().all
    );
    // The server of the younger one was told, and refuses those who name only it, also after a restart.
    let alone = with_id("", &[&servers[1]], YOUNGER);
    let is_refused = || {
        let error = member(&alone).list("lease/orders").expect_err("refused");
        assert!(
            error.is_two_stores() && error.to_string().contains("store adopt"),
            "{error}"
        );
    };
    until("the server is told", || {
        member(&alone).list("lease/orders").err()
    });
    is_refused();
    servers[1].stop();
    servers[1] = offer_at(servers[1].address, stores[1].clone(), |_| ());
    is_refused();
    servers[1].stop();
    // An operator says that the older one is gone.
    let new = adopt(&*stores[1]).expect("memory");
    servers[1] = offer_at(servers[1].address, stores[1].clone(), |_| ());
    let adopted = with_id("", &[&servers[1]], &new.to_string());
    member(&adopted)
        .list("lease/orders")
        .expect("it is one of its own");
    refused(member(&alone).list("lease/orders"));
}

/// As after a clone of a virtual machine: nothing differs but what was written since.
#[test]
fn members_of_two_copies_claim_and_extend_nothing() {
    let stores = [OLDER, OLDER].map(store_of);
    let Two {
        mut servers,
        services,
    } = Two::start(&stores, [OLDER, OLDER]);
    let both = with_id("", &[&servers[0], &servers[1]], OLDER);
    // Before a first ID.
    for url in [&both, &url("", &[&servers[1], &servers[0]])] {
        let error = service(url).expect_err("no second ID");
        assert!(
            error.to_string().contains("one of them is a copy"),
            "{error}"
        );
    }
    for service in &services {
        // Holders go on to their bounds.
        let said = until("the bound is reached", || {
            let ended = service.gen_id().is_err();
            service.status().all.not_ready_because.filter(|_| ended)
        });
        assert!(said.contains("TWO_STORES: what is put by way of"), "{said}");
        assert_eq!(
            service.status().all.sealed,
            None,
            "which of them is wrong is not known"
        );
    }
    let holder = member(&both);
    servers[1].stop();
    // One that stops proves nothing; a start that names the right one does.
    for service in &services {
        service.gen_id().expect_err("not extended");
    }
    holder.list("lease/orders").expect("the one that is left");
}

#[test]
fn a_start_that_does_not_know_its_store_needs_every_server() {
    let store = store_of(OLDER);
    let (one, mut two) = (offer(store.clone(), |_| ()), offer(store.clone(), |_| ()));
    let folder = vesta_testkit::fast_folder();
    let options = Options {
        state_dir: Some(folder.path().into()),
        ..Options::default()
    };
    let servers = url("", &[&one, &two]);
    let start = |options: &Options| {
        vesta_store::open_with(&servers, options)
            .expect("it opens")
            .list("lease/orders")
    };
    two.stop();
    let error = start(&options).expect_err("one is missing");
    let said = error.to_string();
    assert!(!error.is_permanent(), "it may come back: {said}");
    for part in [
        &*format!("{} has not said", two.address),
        &format!("?id={OLDER}"),
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    member(&with_id("", &[&one, &two], OLDER))
        .list("lease/orders")
        .expect("it is named");
    let two = offer_at(two.address, store, |_| ());
    start(&options).expect("both answer");
    drop(two);
    start(&options).expect("it is known from the start before");
    start(&Options::default()).expect_err("elsewhere it is not");
}

#[test]
fn an_identity_that_no_server_has_is_refused_in_one_sentence() {
    let server = offer(store_of(OLDER), |_| ());
    let said = refused(member(&with_id("", &[&server], YOUNGER)).list("lease/orders"));
    let start = format!(
        "no server of the URL has the store with ?id={YOUNGER}: {} has {OLDER};",
        server.address
    );
    assert!(said.starts_with(&start), "{said}");
}

/// As every other store: it warns, and the next start needs every server again.
#[test]
fn a_state_directory_that_cannot_be_written_does_not_end_a_start() {
    let server = offer(store_of(OLDER), |_| ());
    let nowhere = Options {
        state_dir: Some("/proc/vesta".into()),
        ..Options::default()
    };
    let store = vesta_store::open_with(&url("", &[&server]), &nowhere).expect("it opens");
    store.list("lease/orders").expect("it goes on");
    let service = LocalIdService::builder()
        .namespace("orders")
        .machine(MachineSource::Pool { store, range: None })
        .state_dir("/proc/vesta");
    service
        .build()
        .expect("as over any store")
        .gen_id()
        .expect("an ID");
}

#[test]
fn many_members_prove_at_once_and_leave_little() {
    let store = store_of(OLDER);
    let servers = [offer(store.clone(), |_| ()), offer(store.clone(), |_| ())];
    let url = url("", &[&servers[0], &servers[1]]);
    std::thread::scope(|scope| {
        let start = || open_and_list(&url);
        let all: Vec<_> = (0..40).map(|_| scope.spawn(start)).collect();
        for one in all {
            one.join().expect("no panic").expect("one store");
        }
    });
    let proofs = store.list("pool/proof").expect("memory");
    assert!((1..=256).contains(&proofs.len()), "{}", proofs.len());
}

fn open_and_list(url: &StoreUrl) -> Result<(), StoreError> {
    vesta_store::open(url)
        .expect("it opens")
        .list("lease/orders")
        .map(drop)
}

/// To tell a server of an older store ends the service of all its namespaces.
#[test]
fn a_token_for_some_namespaces_proves_but_does_not_end_the_service_of_others() {
    let stores = [OLDER, YOUNGER].map(store_of);
    let servers = [0, 1].map(|at| {
        offer(stores[at].clone(), |config| {
            let token = |name| Token::of_text(name, name, Scopes::POOL);
            let some = token("some").of_namespaces(&["orders"]);
            config.auth = Some(Auth::new([token("any"), some]));
        })
    });
    let same = offer(stores[0].clone(), |_| ());
    let proved = with_id(":some@", &[&servers[0], &same], OLDER);
    member(&proved).list("lease/orders").expect("one store");
    let list =
        |login| member(&with_id(login, &[&servers[0], &servers[1]], OLDER)).list("lease/orders");
    list(":some@").expect("of the older one");
    let alone = with_id(":any@", &[&servers[1]], YOUNGER);
    member(&alone).list("lease/orders").expect("not refused");
    list(":any@").expect("of the older one");
    assert!(
        member(&alone)
            .list("lease/orders")
            .expect_err("refused")
            .is_two_stores()
    );
}

/// The identity is copied with the file; the place of the file is not.
#[test]
fn a_copied_file_is_not_offered_until_it_is_adopted() {
    let folder = vesta_testkit::fast_folder();
    let [original, copy] = ["original.db", "copy.db"].map(|name| folder.path().join(name));
    let open_file = |path: &std::path::Path| {
        let url = format!("sqlite:{}", path.display()).parse().expect("a URL");
        vesta_store::open(&url).expect("it opens")
    };
    let store = open_file(&original);
    assert_eq!(refusal(&*store).expect("a file"), None);
    assert_eq!(refusal(&*store).expect("a file"), None, "at the same place");
    let leases = Leases::new(store.clone(), "orders");
    leases.open("a layout").expect("created");
    drop((store, leases));
    std::fs::copy(&original, &copy).expect("a copy");
    assert_eq!(refusal(&*open_file(&original)).expect("a file"), None);
    let copied = open_file(&copy);
    let ids = [&original, &copy].map(|path| identity(&*open_file(path)).expect("a file"));
    assert_eq!(ids[0], ids[1], "the number proves nothing");
    let server = offer(copied.clone(), |_| ());
    let error = open("", &[&server])
        .list("lease/orders")
        .expect_err("refused");
    assert!(
        error.is_two_stores() && error.to_string().contains("was moved or copied"),
        "{error}"
    );
    adopt(&*copied).expect("an operator says so");
    assert_eq!(refusal(&*copied).expect("a file"), None);
    assert_eq!(
        copied.namespaces().expect("a file"),
        Some(vec!["orders".to_owned()])
    );
}
