//! Imports: from the machine IDs found to the records and the report.

use super::super::testing::{NOW, World, at, held};
use super::*;
use vesta_explain::layouts;

fn found(machine: u64, host: &str) -> ForeignOwner {
    ForeignOwner {
        machine,
        host: host.into(),
        last_used: None,
    }
}

fn import(world: &World, found: &[ForeignOwner]) -> Result<String, String> {
    let opened = world.opened();
    world.with_console(None, |_| take_over(&opened, Legacy::Leaf, found))
}

#[test]
fn each_machine_id_is_reported_as_reserved_or_left_alone() {
    let world = World::new();
    world.put(4, &held(at(5)));
    world.put(
        5,
        &Record {
            owner: 0,
            released: true,
            ..held(at(5))
        },
    );
    let found = [
        found(3, "10.0.0.3:80"),
        found(4, "10.0.0.4:80"),
        found(5, "x"),
        found(9, "y"),
    ];
    let said = import(&world, &found).expect("memory");
    let expected = [
        "       3  reserved for 10.0.0.3:80",
        "       4  left alone: held here by web-1 (pid 4711); is the machine ID in use twice?",
        "       5  left alone: used here before, now free",
        "       9  reserved for y",
        "2 written, 2 left alone, in namespace default of memory.",
    ];
    assert_eq!(said.lines().take(5).collect::<Vec<_>>(), expected);
    assert!(said.contains("store free ID\n"), "{said}");
    assert!(
        said.contains("Note: Leaf makes IDs of the layout snowflake"),
        "{said}"
    );
    let record = world.record(3);
    assert_eq!((record.owner, record.bound), (Record::FOREIGN, at(10)));
    assert_eq!(
        (record.epoch, record.host.as_str(), record.info_time),
        (1, "10.0.0.3:80", NOW)
    );
    assert_eq!(world.record(4), held(at(5)));
}

const COSID: Legacy<'_> = Legacy::CosId {
    namespace: "shop",
    max_machine: 1023,
};

/// Whatever their region, IDs of a system's own layout collide only with those of the same machine
/// ID.
#[test]
fn a_layout_other_than_the_legacy_systems_is_reported() {
    let region = IdMeta::SNOWFLAKE.in_region(3, 0).expect("a region");
    let of_leaf = "Note: Leaf makes IDs of the layout snowflake, but";
    let of_cosid = "Note: CosId makes IDs of the layout cosid or cosid-second or cosid-js, but";
    for (legacy, layout, note) in [
        (Legacy::Leaf, region, ""),
        (Legacy::Leaf, IdMeta::SNOWFLAKE, ""),
        (Legacy::Leaf, IdMeta::UID, of_leaf),
        (Legacy::Leaf, layouts::COSID, of_leaf),
        (COSID, layouts::COSID, ""),
        (COSID, layouts::COSID_SECOND, ""),
        (COSID, layouts::COSID_JS, ""),
        (COSID, layouts::COSID.in_region(3, 7).expect("a region"), ""),
        (COSID, IdMeta::SNOWFLAKE, of_cosid),
        (Legacy::VestaDb, IdMeta::SNOWFLAKE, ""),
    ] {
        let said = said(&World::new().opened_for(layout), legacy, &[]);
        assert!(said.contains(note), "{layout}: {said}");
        assert_eq!(said.contains("Note:"), !note.is_empty(), "{layout}: {said}");
    }
}

#[test]
fn the_cosid_namespace_is_for_cosid_only() {
    let layout = layouts::COSID_JS;
    let asked = |system, namespace| legacy(system, namespace, &layout).map_err(|it| it.to_string());
    let cosid = Legacy::CosId {
        namespace: "shop",
        max_machine: 7,
    };
    assert_eq!(asked(LegacySystem::CosId, Some("shop")), Ok(cosid));
    assert_eq!(asked(LegacySystem::Leaf, None), Ok(Legacy::Leaf));
    assert_eq!(asked(LegacySystem::VestaDb, None), Ok(Legacy::VestaDb));
    let said = asked(LegacySystem::CosId, None).expect_err("refused");
    assert!(said.contains("needs --cosid-namespace"), "{said}");
    for system in [LegacySystem::Leaf, LegacySystem::VestaDb] {
        let said = asked(system, Some("shop")).expect_err("refused");
        assert_eq!(said, "--cosid-namespace is for cosid only; remove it");
    }
}

#[test]
fn a_repeated_import_changes_nothing() {
    let world = World::new();
    let found = [found(3, "a"), found(9, "b")];
    import(&world, &found).expect("memory");
    let before = [world.record(3), world.record(9)];
    let said = import(&world, &found).expect("memory");
    assert!(
        said.contains("       3  left alone: already reserved for a\n"),
        "{said}"
    );
    assert!(said.contains("0 written, 2 left alone"), "{said}");
    assert!(!said.contains("store free"), "{said}");
    assert_eq!([world.record(3), world.record(9)], before);
}

#[test]
fn a_machine_id_out_of_range_is_refused_and_nothing_is_written() {
    let world = World::new();
    let said = import(&world, &[found(3, "a"), found(1024, "b")]).expect_err("refused");
    assert!(
        said.contains("machine IDs of 0 to 1023, but the foreign owners use 1024"),
        "{said}"
    );
    assert!(
        world
            .opened()
            .snapshot()
            .expect("memory")
            .records
            .is_empty()
    );
}

#[test]
fn a_machine_id_whose_record_was_deleted_is_refused_and_nothing_is_written() {
    let world = World::new();
    world.put(3, &held(at(5)));
    world.delete(3);
    let said = import(&world, &[found(2, "a"), found(3, "b")]).expect_err("refused");
    assert!(
        said.contains("machine ID 3 in namespace default was deleted or replaced"),
        "{said}"
    );
    assert!(said.contains("(store repair 3)"), "{said}");
    assert!(
        world
            .opened()
            .snapshot()
            .expect("memory")
            .records
            .is_empty()
    );
}

#[test]
fn a_source_is_named_without_its_password() {
    let from = "zookeeper://u:pl4nted@zk:2181/snowflake/ids/forever";
    let from = from.parse().expect("a right URL");
    let said = report(Legacy::Leaf, &from, 1) + &report(Legacy::Leaf, &from, 0);
    assert!(
        said.contains("Leaf has handed out 1 machine ID in zookeeper://u:***@zk:2181/"),
        "{said}"
    );
    assert!(said.contains("no machine ID in"), "{said}");
    assert!(!said.contains("pl4nted"), "{said}");
}

#[test]
fn a_source_of_another_kind_is_refused() {
    for (legacy, from) in [
        (Legacy::VestaDb, "redis://:pl4nted@h"),
        (Legacy::VestaDb, "sqlite:vesta.db"),
        (Legacy::Leaf, "redis://:pl4nted@h"),
        (COSID, "postgres://u:pl4nted@h/d"),
    ] {
        let from = from.parse().expect("a right URL");
        let error = read(legacy, &from).expect_err("refused");
        let said = error.to_string();
        assert!(
            said.starts_with("--from: ") && said.contains(" keeps its data in "),
            "{said}"
        );
        assert_eq!(error.exit_code(), 64);
        assert!(!said.contains("pl4nted"), "{said}");
    }
}
