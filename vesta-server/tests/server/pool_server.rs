//! The pool server: the store of a server keeps its promises for processes that reach only the server.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonic::Code;
use vesta_boot::{Auth, Config, Offered, Outcome, Scopes, Token};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_intf::{ErrorKind, UnixMillis};
use vesta_numbers::segment::{KvSegments, NewSegmentTag, SegmentService, SegmentStore as _};
use vesta_server::METHODS;
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::contract::IdMeta;
use vesta_service::lease::{Doubt, KvStore, Leases, StoreError, Writer, identity};
use vesta_service::testing::{Answer, FlakyStore, Intercept, ManualClock, MemoryStore, Request};
use vesta_service::{BuildError, LocalIdService, MachineSource};
use vesta_store::conformance::{Backend, Fixture, NAMESPACES};
use vesta_store::{Options, StoreUrl};

use crate::support::{FREE, Server};

struct PoolServer;

/// A server, and the store behind it. A restart takes another port.
struct Served {
    store: Arc<MemoryStore>,
    server: Mutex<Server>,
}

fn serve(store: &Arc<MemoryStore>) -> Server {
    let mut offered = Offered::new(store.clone());
    offered.checked = false; // the suite writes more than owners do
    Server::pool_server(offered, |config| {
        let rounds = (0..100).map(|round| format!("round-{round}"));
        let names = NAMESPACES.into_iter().map(str::to_owned);
        config.pool_server.namespaces = names.chain(rounds).collect();
        // A thousand starters share one processor with the server.
        config.limits.request_timeout = Duration::from_secs(30);
    })
}

pub(crate) fn url(login: &str, servers: &[&Server]) -> StoreUrl {
    let servers: Vec<_> = servers.iter().map(|it| it.address.to_string()).collect();
    let url = format!("vesta://{login}{}", servers.join(","));
    url.parse().expect("a URL")
}

pub(crate) fn open(login: &str, servers: &[&Server]) -> Arc<dyn KvStore> {
    vesta_store::open(&url(login, servers)).expect("it opens")
}

impl Backend for PoolServer {
    fn fresh(&self) -> Box<dyn Fixture> {
        let store = Arc::new(MemoryStore::new());
        let server = Mutex::new(serve(&store));
        Box::new(Served { store, server })
    }
}

impl Fixture for Served {
    fn connect(&self) -> Arc<dyn KvStore> {
        open("", &[&self.server.lock().expect("no panic")])
    }

    fn restart(&self) {
        *self.server.lock().expect("no panic") = serve(&self.store);
    }

    fn delete(&self, area: &str, key: &str) -> bool {
        self.store.delete(area, key);
        true
    }
}

mod conformance {
    vesta_store::conformance!(super::PoolServer);
}

/// A pool server of the namespaces orders and users.
pub(crate) fn offer(store: Arc<dyn KvStore>, adjust: impl FnOnce(&mut Config)) -> Server {
    offer_at(FREE.into(), store, adjust)
}

pub(crate) fn offer_at(
    address: SocketAddr,
    store: Arc<dyn KvStore>,
    adjust: impl FnOnce(&mut Config),
) -> Server {
    Server::pool_server_at(address, Offered::new(store), |config| {
        config.pool_server.namespaces = ["orders", "users"].map(str::to_owned).into();
        adjust(config);
    })
}

pub(crate) fn refused<T>(answer: Result<T, StoreError>) -> String {
    let error = answer.map(drop).expect_err("refused");
    assert!(error.is_permanent(), "{error}");
    error.to_string()
}

#[test]
fn a_member_claims_and_issues_through_the_pool_server() {
    let store = Arc::new(MemoryStore::new());
    let (server, folder) = (offer(store.clone(), |_| ()), vesta_testkit::fast_folder());
    let service = LocalIdService::builder()
        .namespace("orders")
        .machine(MachineSource::Pool {
            store: open("", &[&server]),
            range: None,
        })
        .state_dir(folder.path())
        .build()
        .expect("a machine ID is free");
    service.gen_id().expect("an ID");
    let machine = service.machine();
    let record = Leases::new(store.clone(), "orders").record(machine);
    let record = record.expect("memory").expect("it was claimed");
    let via = format!(" via {}", vesta_boot::host_name());
    assert!(record.host.ends_with(&via), "{}", record.host);
    service.close();
    let record = Leases::new(store, "orders").record(machine);
    assert!(record.expect("memory").expect("it was claimed").released);
    for method in ["Open", "List", "Get", "Put"] {
        let at = METHODS
            .iter()
            .position(|it| *it == method)
            .expect("a method");
        assert!(server.metrics.requests(at, Outcome::Ok) > 0, "{method}");
    }
}

#[test]
fn numbers_of_a_tag_come_through_the_pool_server() {
    let store = Arc::new(MemoryStore::new());
    let server = offer(store.clone(), |_| ());
    let segments = Arc::new(KvSegments::new(open("", &[&server])));
    let tag = NewSegmentTag::new("orders", 100).expect("a tag");
    assert!(segments.create(&tag).expect("it answers"));
    let service = SegmentService::builder(segments)
        .build()
        .expect("a service");
    let numbers = service.segment("orders").expect("a tag");
    assert_eq!(
        [(); 3].map(|()| numbers.next().expect("a number")),
        [1, 2, 3]
    );
    let kept = KvSegments::new(store).tags().expect("memory");
    assert_eq!(kept[0].max_id, 101);
}

#[test]
fn a_namespace_that_is_not_offered_is_refused_by_name() {
    let server = offer(Arc::new(MemoryStore::new()), |_| ());
    let member = open("", &[&server]);
    let said = refused(member.list("lease/other"));
    assert!(
        said.contains("`other` is not offered here; offered are orders, users"),
        "{said}"
    );
    assert!(refused(member.get("pool", "identity")).contains("unknown area"));
    member.list("block/users/7").expect("offered");
    let at = METHODS
        .iter()
        .position(|it| *it == "List")
        .expect("a method");
    let outcome = Outcome::Error(ErrorKind::Internal);
    assert_eq!(server.metrics.requests(at, outcome), 1);
}

#[test]
fn a_member_reads_some_entries_and_at_most_128_at_once() {
    let store = Arc::new(MemoryStore::new());
    for key in ["1", "2"] {
        assert!(
            store
                .put_if("segment/tags", key, None, key)
                .expect("memory")
        );
    }
    let server = offer(store, |_| ());
    let member = open("", &[&server]);
    let keys: Vec<_> = (2..=130).map(|key| key.to_string()).collect();
    let read = member.get_all("segment/tags", &keys[..128]);
    assert_eq!(read.expect("it answers"), [("2".into(), "2".into())]);
    let said = refused(member.get_all("segment/tags", &keys));
    assert!(said.contains("at most 128, and they are 129"), "{said}");
}

#[test]
fn a_token_is_valid_for_its_scope_and_its_namespaces() {
    let server = offer(Arc::new(MemoryStore::new()), |config| {
        let token = |name, scopes| Token::of_text(name, name, scopes);
        config.auth = Some(Auth::new([
            token("any", Scopes::POOL),
            token("orders", Scopes::POOL).of_namespaces(&["orders"]),
            token("maker", Scopes::GENERATE),
        ]));
    });
    let list = |login: &str, area: &str| open(login, &[&server]).list(area);
    list(":any@", "lease/users").expect("any namespace");
    list(":any@", "segment/tags").expect("tags");
    list(":orders@", "lease/orders").expect("its own namespace");
    for (login, area, why) in [
        (":orders@", "lease/users", "not valid for namespace `users`"),
        (":orders@", "segment/tags", "valid for some namespaces only"),
        (":maker@", "lease/orders", "needs the scope pool"),
        (
            ":wr0ng@",
            "lease/orders",
            "unknown token; write vesta://:TOKEN@host",
        ),
        ("", "lease/orders", "a token is needed"),
    ] {
        let said = refused(list(login, area));
        assert!(said.contains(why) && !said.contains("wr0ng"), "{said}");
    }
}

#[test]
fn a_server_with_another_store_is_refused() {
    let [one, same, other] = {
        let store = Arc::new(MemoryStore::new());
        let other = Arc::new(MemoryStore::new());
        [store.clone(), store, other].map(|store| offer(store, |_| ()))
    };
    open("", &[&one, &same])
        .list("lease/orders")
        .expect("one store");
    let said = refused(open("", &[&one, &other]).list("lease/orders"));
    assert!(said.contains("have different stores"), "{said}");
}

/// A connection that breaks is opened again by itself, perhaps to another server.
#[test]
fn another_store_at_the_address_of_a_server_is_refused_over_a_new_connection() {
    let mut first = offer(Arc::new(MemoryStore::new()), |_| ());
    let member = open("", &[&first]);
    let leases = Leases::new(member.clone(), "orders");
    leases
        .open(&IdMeta::MAX_PEAK.fingerprint())
        .expect("created");
    let segments = KvSegments::new(member.clone());
    first.stop();
    let other = Arc::new(MemoryStore::new());
    let _second = offer_at(first.address, other.clone(), |_| ());
    // The first request may still meet the old connection.
    let _ = leases.find();
    let tag = NewSegmentTag::new("orders", 100).expect("a tag");
    for said in [
        refused(leases.find()),
        refused(member.list("lease/orders")),
        refused(segments.create(&tag)),
        refused(member.doubt()),
        refused(member.now()),
    ] {
        assert!(said.contains("another store than"), "{said}");
    }
    assert_eq!(other.list("segment/tags").expect("memory"), []);
}

/// Each request by itself: the check does not depend on when a connection was opened.
#[test]
fn each_request_names_the_store_that_it_means() {
    let store = Arc::new(MemoryStore::new());
    let server = serve(&store);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let own = identity(&*store).expect("memory").number;
    for (identity, allowed) in [(own, true), (own ^ 1, false), (0, false)] {
        let codes = runtime.block_on(async {
            let mut pool_server = PoolServiceClient::new(server.channel().await);
            let (area, key) = ("serial/tags".to_owned(), "a".to_owned());
            let put = v1::PutEntry {
                key: key.clone(),
                old: None,
                new: identity.to_string(),
                secret: None,
            };
            let list = v1::ListEntriesRequest {
                area: area.clone(),
                identity,
                keys: Vec::new(),
            };
            let get = v1::GetEntryRequest {
                area: area.clone(),
                key,
                identity,
            };
            let put = v1::PutEntriesRequest {
                area,
                puts: vec![put],
                identity,
            };
            [
                pool_server.list(list).await.map(drop),
                pool_server.get(get).await.map(drop),
                pool_server.put(put).await.map(drop),
            ]
        });
        for answer in codes {
            let code = answer.map_or_else(|status| status.code(), |()| Code::Ok);
            let expected = if allowed {
                Code::Ok
            } else {
                Code::FailedPrecondition
            };
            assert_eq!(code, expected, "{identity}");
        }
    }
    let kept = store.get("serial/tags", "a").expect("memory");
    assert_eq!(kept, Some(own.to_string()));
}

/// Also by a process that starts later, on the same host.
#[test]
fn another_identity_behind_the_same_url_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let mut server = offer(store.clone(), |_| ());
    let folder = vesta_testkit::fast_folder();
    let options = Options {
        state_dir: Some(folder.path().into()),
        ..Options::default()
    };
    let address = url("", &[&server]);
    let start = || vesta_store::open_with(&address, &options).expect("it opens");
    let member = start();
    member.list("lease/orders").expect("it answers");
    // A server that was restarted with the same store is the same pool server.
    server.stop();
    let mut server = offer_at(server.address, store.clone(), |_| ());
    start().list("lease/orders").expect("it answers");
    // The contents were replaced while the server ran.
    store.delete("pool", "identity");
    identity(&*store).expect("drawn anew");
    refused(start().list("lease/orders"));
    server.stop();
    let mut server = offer_at(server.address, Arc::new(MemoryStore::new()), |_| ());
    let said = refused(start().list("lease/orders"));
    assert!(
        said.contains("another store answers than before at this URL"),
        "{said}"
    );
    let [file] = &Vec::from_iter(fs::read_dir(folder.path()).expect("a folder"))[..] else {
        panic!("one file");
    };
    let file = file.as_ref().expect("a file").path();
    assert!(
        said.contains(&format!("delete {}", file.display())),
        "{said}"
    );
    fs::remove_file(&file).expect("deleted on purpose");
    start().list("lease/orders").expect("the new store");
    // A crash may have left it empty.
    let known = fs::read(&file).expect("a file");
    fs::write(&file, "").expect("it is writable");
    start().list("lease/orders").expect("the same store");
    assert_eq!(fs::read(&file).expect("a file"), known);
    fs::remove_file(&file).expect("it is there");
    fs::create_dir(&file).expect("a folder in its place");
    let said = refused(start().list("lease/orders"));
    assert!(said.contains(&file.display().to_string()), "{said}");
    server.stop();
}

#[test]
fn errors_of_the_store_keep_their_class_and_its_facts_pass() {
    let facts = Intercept::new(
        Arc::new(MemoryStore::new()),
        |request, store| match request {
            Request::Now => Ok(Answer::Now(Some(vesta_intf::UnixMillis(5)))),
            Request::Doubt => Ok(Answer::Doubt(Some(Doubt::of("it has a replica", true)))),
            Request::Get { key: "gone", .. } => Err(StoreError::unavailable(
                "the database does not answer",
                std::io::Error::other("broken pipe"),
            )),
            Request::Get { key: "full", .. } => Err(StoreError::permanent("the disk is full")),
            Request::Get { key: "new", .. } => Err(StoreError::replaced("the file was replaced")),
            request => request.send(store),
        },
    );
    let server = offer(Arc::new(facts), |_| ());
    let member = open("", &[&server]);
    assert_eq!(
        member.now().expect("it answers"),
        Some(vesta_intf::UnixMillis(5))
    );
    let doubt = member.doubt().expect("it answers").expect("a doubt");
    assert!(doubt.took_over && doubt.why == "it has a replica");
    let class = |key: &str| {
        let error = member.get("lease/orders", key).expect_err(key);
        assert!(!error.is_replaced());
        (error.is_permanent(), error.to_string())
    };
    let (permanent, said) = class("gone");
    assert!(
        !permanent && said.contains("does not answer: broken pipe"),
        "{said}"
    );
    assert!(class("full").0);
    assert!(
        !class("new").0,
        "a new start of the pool server may heal it"
    );
}

/// Otherwise a member whose clock is years ahead would reserve up to there.
#[test]
fn a_member_compares_its_clock_with_the_pool_servers_if_the_store_has_none() {
    let server = offer(Arc::new(MemoryStore::new()), |_| ());
    for (member, ahead) in [("near", 0), ("far", 5 * 365 * 86_400)] {
        let folder = vesta_testkit::fast_folder();
        let clock = SystemClock::new().wall().0 + ahead * 1000;
        let built = LocalIdService::builder()
            .namespace("orders")
            .machine(MachineSource::Pool {
                store: open("", &[&server]),
                range: None,
            })
            .clock(Arc::new(ManualClock::at(UnixMillis(clock))))
            .state_dir(folder.path())
            .build();
        match built {
            Ok(_) => assert_eq!(member, "near"),
            Err(error) => {
                assert!(matches!(error, BuildError::ClocksDiffer { .. }), "{error}");
                assert_eq!(member, "far");
            }
        }
    }
}

/// The reach of a doubt rests on it.
#[test]
fn a_member_learns_the_usual_window_of_the_store() {
    let folder = vesta_testkit::fast_folder();
    let file = folder.path().join("pool-server.db");
    let file = format!("sqlite:{}", file.display()).parse().expect("a URL");
    let store = vesta_store::open(&file).expect("it opens");
    let server = offer(store.clone(), |_| ());
    let window = open("", &[&server]).usual_window();
    assert_eq!(window, store.usual_window());
    assert_ne!(window, MemoryStore::new().usual_window(), "not a guess");
}

#[test]
fn a_server_without_a_pool_server_says_so() {
    let off = Server::start(vesta_intf::IdMeta::MAX_PEAK);
    let said = refused(open("", &[&off]).list("lease/orders"));
    assert!(
        said.contains("the pool server is off; set pool_server.namespaces"),
        "{said}"
    );
    // Another server of the URL may be newer.
    let service = tonic_health::server::health_reporter().1;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let router = tonic::transport::Server::builder().add_service(service);
    runtime.spawn(router.serve_with_incoming(incoming));
    let older: StoreUrl = format!("vesta://{address}").parse().expect("a URL");
    let error = vesta_store::open(&older)
        .expect("it opens")
        .list("lease/orders");
    let error = error.expect_err("it has no such service");
    assert!(
        !error.is_permanent() && error.to_string().contains("of an older version"),
        "{error}"
    );
    let store = Arc::new(MemoryStore::new());
    let server = offer(store.clone(), |_| ());
    let id = identity(&*store).expect("memory");
    let both = format!("vesta://{address},{}?id={id}", server.address);
    let both = vesta_store::open(&both.parse().expect("a URL")).expect("it opens");
    both.list("lease/orders").expect("from the newer one");
}

/// SQLite and memory have the clock of their host, and that is the server's for a member.
#[test]
fn a_member_whose_clock_is_wrong_uses_up_no_machine_id_of_a_store_without_a_clock() {
    const YEAR: u64 = 365 * 24 * 3_600_000;
    let folder = vesta_testkit::fast_folder();
    let file = folder.path().join("pool-server.db");
    let file = format!("sqlite:{}", file.display()).parse().expect("a URL");
    let server = offer(vesta_store::open(&file).expect("it opens"), |_| ());
    let member = |host: &str, ahead: u64| {
        let clock = ManualClock::at(UnixMillis(SystemClock::new().wall().0 + ahead));
        let range = Some(0..=0);
        let store = open("", &[&server]);
        LocalIdService::builder()
            .namespace("orders")
            .machine(MachineSource::Pool { store, range })
            .clock(Arc::new(clock))
            .state_dir(folder.path().join(host))
            .build()
    };
    for (host, ahead) in [("a", 5 * YEAR), ("b", 10 * YEAR), ("c", 70_000)] {
        let error = member(host, ahead).expect_err("refused");
        assert!(matches!(error, BuildError::ClocksDiffer { .. }), "{error}");
    }
    member("right", 0).expect("the only machine ID is free");
}

/// The server behind the pool server, not the pool server, has the data.
#[test]
fn a_member_is_refused_when_the_pool_servers_store_is_another_server_that_hides_its_source() {
    let store = FlakyStore::new(Arc::new(MemoryStore::new()));
    let at = |server: &str| Writer {
        server: server.into(),
        unseen: Some("GRANT X".into()),
    };
    let (server, folder) = (offer(store.clone(), |_| ()), vesta_testkit::fast_folder());
    let member = || {
        LocalIdService::builder()
            .namespace("orders")
            .machine(MachineSource::Pool {
                store: open("", &[&server]),
                range: Some(0..=0),
            })
            .state_dir(folder.path())
            .build()
    };
    store.show_writer(at("a"));
    member().expect("a machine ID is free").close();
    store.show_writer(at("b"));
    let error = member().expect_err("another server").to_string();
    assert!(
        error.contains("server `a` wrote") && error.contains("`GRANT X`"),
        "{error}"
    );
    store.show_writer(at("a"));
    member().expect("the server that wrote last");
}
