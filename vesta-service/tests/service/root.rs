//! The names in the crate root, and that calls need no trait.

use vesta_service::*;

/// A name in the root is one more thing to read before the first ID: it must be worth that.
#[test]
fn the_root_exports_at_most_twenty_names() {
    let source = include_str!("../../src/lib.rs");
    let mut names = Vec::new();
    for item in source
        .split(';')
        .filter_map(|item| Some(item.split_once("\npub ")?.1))
    {
        let item = item
            .strip_prefix("use ")
            .or(item.strip_prefix("mod "))
            .expect(item);
        let item = item.rsplit(" as ").next().unwrap_or(item);
        let list = item
            .rsplit_once("::{")
            .map(|(_, list)| list.trim_end_matches('}'));
        let last = || item.rsplit("::").next().unwrap_or(item);
        names.extend(
            list.unwrap_or_else(last)
                .split(',')
                .map(str::trim)
                .filter(|n| !n.is_empty()),
        );
    }
    assert!(
        names.contains(&"VestaId") && names.contains(&"testing"),
        "{names:?}"
    );
    assert!(!names.contains(&"*"), "{names:?}");
    assert!(names.len() <= 20, "{}: {names:?}", names.len());
}

/// With a glob import and both traits in scope, the calls are those of the service itself.
#[test]
fn everyday_calls_are_not_ambiguous() {
    #[allow(unused_imports, reason = "they must not make calls ambiguous")]
    use vesta_service::contract::{AsyncIdService, IdService};

    let builder = LocalIdService::builder().machine(MachineSource::Stateless(1));
    let ids = builder.build().unwrap();
    let id: VestaId = ids.next().unwrap();
    assert!(ids.next::<u64>().unwrap() > id.into());
    assert!(VestaId::from(ids.gen_id().unwrap()) > id);
    let parts = ids.exp_id(id).unwrap();
    let made = contract::MakeId {
        machine: Some(1),
        ..contract::MakeId::new(parts.time, parts.seq)
    };
    assert_eq!(ids.make_id(&made).unwrap(), u64::from(id));
    assert_eq!(
        ids.trans_time(parts.time).unwrap(),
        id.created_at(ids.meta()).unwrap().to_system_time()
    );
    let mut batch = [0; 3];
    ids.gen_ids(&mut batch).unwrap();
    assert!(batch.is_sorted() && ids.try_gen_ids(&mut batch).unwrap() > 0);
}
