//! Changes of a registry's entries that are nearly right: none harms a member.

use std::panic::AssertUnwindSafe;

use prost::Message as _;
use vesta_intf::grpc::v1;
use vesta_service::lease::{KvStore as _, Leases, identity};
use vesta_service::{LocalIdService, MachineSource};

use super::{EDGES, Server, frame};
use texts::{Changes, damaged};

#[path = "../../../scripts/fuzz/texts.rs"]
mod texts;

const PUT: &str = "/vesta.v1.RegistryService/Put";
const AREA: &str = "lease/orders";

/// A change: which entry, its form, which number and which value, and damage to the text.
type Change = (u8, u8, u8, u8, Changes);

/// Replaces a number of the text.
fn with_number(text: &str, which: u8, value: u64) -> String {
    let digits = |at: &usize| text.as_bytes()[*at].is_ascii_digit();
    let starts: Vec<_> = (0..text.len())
        .filter(|at| digits(at) && !digits(&at.saturating_sub(1)))
        .collect();
    let from = starts[usize::from(which) % starts.len()];
    let to = from + text[from..].bytes().take_while(u8::is_ascii_digit).count();
    format!("{}{value}{}", &text[..from], &text[to..])
}

fn put(server: &Server, (entry, form, which, value, changes): &Change) -> Option<String> {
    let entries = server.store.list(AREA).expect("memory");
    let (key, old) = &entries[usize::from(*entry) % entries.len()];
    let changed = match form % 3 {
        0 => damaged(&[old.clone().into_bytes()], 0, changes),
        1 => with_number(old, *which, EDGES[usize::from(*value) % EDGES.len()]).into_bytes(),
        _ => entries[usize::from(*which) % entries.len()]
            .1
            .clone()
            .into_bytes(),
    };
    let new = String::from_utf8(changed).ok()?;
    let change = v1::PutEntry {
        key: key.clone(),
        old: (form % 5 != 0).then(|| old.clone()),
        new,
        secret: (form % 2 == 0).then(|| vec![*value; 16]),
    };
    let request = v1::PutEntriesRequest {
        area: AREA.into(),
        puts: vec![change],
        identity: identity(&*server.store).expect("memory").number,
    };
    let message = request.encode_to_vec();
    server.call(PUT, &[], frame(0, message.len(), &message))
}

fn send_all(checked: bool) {
    let server = AssertUnwindSafe(Server::checking(checked));
    let folder = vesta_testkit::fast_folder();
    let member = LocalIdService::builder()
        .namespace("orders")
        .machine(MachineSource::Pool {
            store: server.store.clone(),
            range: None,
        })
        .state_dir(folder.path())
        .build()
        .expect("a machine ID is free");
    let leases = Leases::new(server.store.clone(), "orders");
    let record = || {
        leases
            .record(member.machine())
            .expect("memory")
            .expect("it is held")
    };
    let (owner, last) = (record().owner, std::cell::Cell::new(0));
    let check = AssertUnwindSafe(|change: &Change| {
        if let Some(status) = put(&server, change) {
            // Done, invalid, or refused for now.
            assert!(["0", "3", "6"].contains(&&*status), "it ends with {status}");
        }
        assert_eq!(record().owner, owner);
        let id = member.gen_id().expect("it goes on");
        assert!(id > last.replace(id));
    });
    bolero::check!()
        .with_iterations(18_000)
        .with_type()
        .for_each(|change: &Change| check(change));
    assert!(leases.snapshot().expect("memory").lost().is_empty());
    member.close();
}

#[test]
fn changes_that_are_nearly_right_harm_no_member() {
    send_all(true);
}

#[test]
#[should_panic]
fn unchecked_changes_harm_a_member() {
    send_all(false);
}
