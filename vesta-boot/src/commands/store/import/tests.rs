//! Imports, from the machine IDs read to the records and the report.

use super::super::testing::{NOW, World, at, held};
use super::*;

fn found(machine: u64, host: &str) -> ForeignOwner {
    ForeignOwner { machine, host: host.into(), last_used: None }
}

fn import(world: &World, found: &[ForeignOwner]) -> Result<String, String> {
    let opened = world.opened();
    world.with_console(None, |_| take_over(&opened, LegacySystem::Leaf, found))
}

#[test]
fn each_machine_id_is_reserved_or_left_alone_and_told_so() {
    let world = World::new();
    world.put(4, &held(at(5)));
    world.put(5, &Record { owner: 0, released: true, ..held(at(5)) });
    let found = [found(3, "10.0.0.3:80"), found(4, "10.0.0.4:80"), found(5, "x"), found(9, "y")];
    let said = import(&world, &found).expect("memory");
    let expected = [
        "       3  reserved for 10.0.0.3:80",
        "       4  left alone: web-1 (pid 4711) has it here; is it the same machine ID twice?",
        "       5  left alone: it was used here, and is free",
        "       9  reserved for y",
        "2 written, 2 left alone, in namespace default of memory.",
    ];
    assert_eq!(said.lines().take(5).collect::<Vec<_>>(), expected);
    assert!(said.contains("store free ID\n"), "{said}");
    assert!(said.contains("Note: Leaf makes IDs of the layout snowflake"), "{said}");
    let record = world.record(3);
    assert_eq!((record.owner, record.bound), (Record::FOREIGN, at(10)));
    assert_eq!((record.epoch, record.host.as_str(), record.info_time), (1, "10.0.0.3:80", NOW));
    assert_eq!(world.record(4), held(at(5)));
}

/// Whatever their region, IDs of Leaf's own layout meet others of the same machine ID only.
#[test]
fn a_region_is_no_other_layout() {
    let region = IdMeta::SNOWFLAKE.in_region(3, 0).expect("a region");
    for (layout, warned) in [(region, false), (IdMeta::SNOWFLAKE, false), (IdMeta::UID, true)] {
        let opened = World::new().opened_for(layout);
        let said = said(&opened, LegacySystem::Leaf, &[]);
        assert_eq!(said.contains("Note: Leaf makes IDs of the layout"), warned, "{layout}: {said}");
    }
}

#[test]
fn again_it_changes_nothing() {
    let world = World::new();
    let found = [found(3, "a"), found(9, "b")];
    import(&world, &found).expect("memory");
    let before = [world.record(3), world.record(9)];
    let said = import(&world, &found).expect("memory");
    assert!(said.contains("       3  left alone: it is reserved for a\n"), "{said}");
    assert!(said.contains("0 written, 2 left alone"), "{said}");
    assert!(!said.contains("store free"), "{said}");
    assert_eq!([world.record(3), world.record(9)], before);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let world = World::new();
    let said = import(&world, &[found(3, "a"), found(1024, "b")]).expect_err("refused");
    assert!(said.contains("machine IDs of 0 to 1023, but the foreign owners use 1024"), "{said}");
    assert!(world.opened().snapshot().expect("memory").records.is_empty());
}

#[test]
fn a_machine_id_whose_record_was_deleted_is_refused_and_nothing_is_written() {
    let world = World::new();
    world.put(3, &held(at(5)));
    world.delete(3);
    let said = import(&world, &[found(2, "a"), found(3, "b")]).expect_err("refused");
    assert!(said.contains("machine ID 3 in namespace default was deleted or replaced"), "{said}");
    assert!(said.contains("(store repair 3)"), "{said}");
    assert!(world.opened().snapshot().expect("memory").records.is_empty());
}

#[test]
fn a_source_is_named_without_its_password() {
    let from = "zookeeper://u:pl4nted@zk:2181/snowflake/ids/forever";
    let from = from.parse().expect("a right URL");
    let said = report(LegacySystem::Leaf, &from, 1) + &report(LegacySystem::Leaf, &from, 0);
    assert!(
        said.contains("Leaf has handed out 1 machine ID in zookeeper://u:***@zk:2181/"),
        "{said}"
    );
    assert!(said.contains("no machine ID in"), "{said}");
    assert!(!said.contains("pl4nted"), "{said}");
}

#[test]
fn a_source_of_another_kind_is_refused() {
    for from in ["sqlite:vesta.db", "redis://:pl4nted@h"] {
        let from = from.parse().expect("a right URL");
        for system in [LegacySystem::VestaDb, LegacySystem::Leaf] {
            let said = read(system, &from).expect_err("refused").to_string();
            assert!(said.starts_with("--from must be a URL such as "), "{said}");
            assert!(!said.contains("pl4nted"), "{said}");
        }
    }
}
