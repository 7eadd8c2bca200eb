//! Forged changes of a member with a token: the pool server refuses each of them, counts it and logs it once.

use std::path::Path;
use std::sync::Arc;

use tonic::Code;
use vesta_boot::{Auth, Offered, Scopes, Token};
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::pool_service_client::PoolServiceClient;
use vesta_service::contract::{IdMeta, UnixMillis};
use vesta_service::lease::{KvStore, identity};
use vesta_service::testing::MemoryStore;
use vesta_service::{LocalIdService, MachineSource};

use crate::support::Server;

/// A pool server of every namespace, with a member that holds a machine ID, and a stranger with a token.
struct World {
    store: Arc<MemoryStore>,
    server: Server,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let server = Server::pool_server(Offered::new(store.clone()), |config| {
            config.pool_server.namespaces = ["*".to_owned()].into();
            let token = |name| Token::of_text(name, name, Scopes::POOL);
            config.auth = Some(Auth::new([token("member"), token("stranger")]));
        });
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Self {
            store,
            server,
            runtime,
        }
    }

    fn open(&self, token: &str) -> Arc<dyn KvStore> {
        let url = format!("vesta://:{token}@{}", self.server.address);
        vesta_store::open(&url.parse().expect("a URL")).expect("it opens")
    }

    fn member(&self, folder: &Path) -> LocalIdService {
        LocalIdService::builder()
            .namespace("orders")
            .machine(MachineSource::Pool {
                store: self.open("member"),
                range: None,
            })
            .state_dir(folder)
            .build()
            .expect("a machine ID is free")
    }

    /// Sends a change as the stranger.
    fn put(&self, area: &str, put: v1::PutEntry) -> (Code, String) {
        let request = v1::PutEntriesRequest {
            area: area.into(),
            puts: vec![put],
            identity: identity(&*self.store).expect("memory").number,
        };
        let mut request = tonic::Request::new(request);
        let token = "Bearer stranger".parse().expect("a header");
        request.metadata_mut().insert("authorization", token);
        let answer = self.runtime.block_on(async {
            let mut pool_server = PoolServiceClient::new(self.server.channel().await);
            pool_server.put(request).await
        });
        match answer {
            Ok(_) => (Code::Ok, String::new()),
            Err(status) => (status.code(), status.message().into()),
        }
    }

    fn refused(&self) -> Vec<u64> {
        self.server
            .metrics
            .refused_changes()
            .map(|it| it.1)
            .collect()
    }
}

fn change(key: &str, old: Option<&str>, new: impl Into<String>) -> v1::PutEntry {
    v1::PutEntry {
        key: key.into(),
        old: old.map(str::to_owned),
        new: new.into(),
        secret: Some(vec![7; 16]),
    }
}

/// Replaces the value of a field of an entry's text.
fn with(text: &str, field: &str, value: &str) -> String {
    let from = text.find(&format!(r#""{field}":"#)).expect(field) + field.len() + 3;
    let to = from + text[from..].find(',').expect("another field");
    format!("{}{value}{}", &text[..from], &text[to..])
}

#[test]
fn a_forged_change_is_refused_and_harms_no_member() {
    let world = World::new();
    let folders = [(); 2].map(|()| vesta_testkit::fast_folder());
    let member = world.member(folders[0].path());
    let first = member.gen_id().expect("an ID");
    let key = member.machine().to_string();
    let area = "lease/orders";
    let entry = |key: &str| {
        world
            .store
            .get(area, key)
            .expect("memory")
            .expect("an entry")
    };
    let (record, namespace) = (entry(&key), entry("namespace"));
    let year = UnixMillis(UnixMillis(0).0 + 1_900_000_000_000);
    let claim = IdMeta::MAX_PEAK.tick_at(year).expect("within the layout") << 20;
    let epoch = with(&record, "epoch", r#""2""#);
    let taken = with(
        &with(&epoch, "from", &format!(r#""{claim}""#)),
        "bound",
        &format!(r#""{claim}""#),
    );
    let released = with(
        &with(&record, "owner", &format!(r#""{:032x}""#, 0)),
        "released",
        "true",
    );
    let doubt =
        r#"{"since":"0","reach":"18446744073709551615","window":"0","tookOver":false,"why":"x"}"#;
    let doubtful = namespace.replace(r#""doubt":null"#, &format!(r#""doubt":{doubt}"#));
    let before = world.store.list(area).expect("memory");
    let forged = [
        (
            area,
            change(&key, Some(&record), released),
            "another owner's claim does not change",
        ),
        (
            area,
            change(&key, Some(&record), taken),
            "it belongs to its owner until its bound has passed at",
        ),
        (
            area,
            change(
                "namespace",
                Some(&namespace),
                with(&namespace, "floor", &format!(r#""{}""#, u64::MAX)),
            ),
            "the floor lies too far ahead",
        ),
        (
            area,
            change("namespace", Some(&namespace), doubtful),
            "the reach of the doubt lies too far ahead",
        ),
        (
            "segment/tags",
            change("orders", None, "x".repeat(1 << 20)),
            "the entry is too long",
        ),
        (
            "lease/ö",
            change("namespace", None, namespace.clone()),
            "unknown area",
        ),
        (
            "lease/a b",
            change("namespace", None, namespace.clone()),
            "unknown area",
        ),
        (
            "lease/a\0",
            change("namespace", None, namespace.clone()),
            "unknown area",
        ),
        (
            &format!("lease/{}", "a".repeat(5_000)),
            change("namespace", None, namespace.clone()),
            "unknown area",
        ),
    ];
    let count = forged.len();
    for (area, put, why) in forged {
        let (code, said) = world.put(area, put);
        let expected = if why.contains("until its bound") {
            Code::AlreadyExists
        } else {
            Code::InvalidArgument
        };
        assert_eq!(code, expected, "{said}");
        assert!(said.contains(why) && said.len() < 400, "{said}");
    }
    assert_eq!(world.refused(), [0, 0, count as u64], "by the stranger");
    assert_eq!(world.store.list(area).expect("memory"), before);
    assert_eq!(world.store.list("segment/tags").expect("memory"), []);
    assert!(member.gen_id().expect("an ID") > first);
    let other = world.member(folders[1].path());
    assert_ne!(other.machine(), member.machine());
    other.close();
    member.close();
    assert_eq!(
        world.refused(),
        [0, 0, count as u64],
        "none of a member's own changes"
    );
}
