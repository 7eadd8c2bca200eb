//! Changes of a pool server's entries that are nearly right: none harms a member.

use prost::Message as _;
use vesta_intf::grpc::v1;
use vesta_service::lease::{KvStore as _, Leases, identity};
use vesta_service::{LocalIdService, MachineSource};
use vesta_testkit::Rng;

use super::{EDGES, Server, frame};
use texts::{Changes, damaged};

#[path = "../../../scripts/check/fuzz/texts.rs"]
mod texts;

const PUT: &str = "/vesta.v1.PoolService/Put";
const AREA: &str = "lease/orders";
const SENT: u32 = 18_000;

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
    Some(server.call(PUT, &[], frame(0, message.len(), &message)))
}

fn change(rng: &mut Rng) -> Change {
    let mut byte = || rng.bits().to_le_bytes()[0];
    let (entry, form, which, value) = (byte(), byte(), byte(), byte());
    let mut word = || u16::from_le_bytes([byte(), byte()]);
    let changes = (0..value % 4).map(|_| (word().to_le_bytes()[0], word(), word()));
    let changes = changes.collect();
    (entry, form, which, value, changes)
}

/// Sends changes until one harms the member. Returns how many did not.
fn harmless(checked: bool) -> u32 {
    let server = Server::checking(checked);
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
    let owner = || Some(leases.record(member.machine()).ok()??.owner);
    let (own, mut last, mut rng) = (owner().expect("it is held"), 0, Rng::new(9));
    for sent in 0..SENT {
        if let Some(status) = put(&server, &change(&mut rng)) {
            // Done, invalid, or refused for now.
            assert!(["0", "3", "6"].contains(&&*status), "it ends with {status}");
        }
        if owner() != Some(own) {
            return sent;
        }
        let id = member.gen_id().expect("it goes on");
        assert!(id > last);
        last = id;
    }
    assert!(leases.snapshot().expect("memory").lost().is_empty());
    member.close();
    SENT
}

#[test]
fn changes_that_are_nearly_right_harm_no_member() {
    assert_eq!(harmless(true), SENT);
}

#[test]
fn unchecked_changes_harm_a_member() {
    assert!(harmless(false) < SENT);
}
