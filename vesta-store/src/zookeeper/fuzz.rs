//! Znodes, their names and URLs of arbitrary contents.

use zookeeper_client::Stat;

use super::format;
use super::target::Target;
use crate::fuzz::{
    Around, Changes, Numbers, check_read, check_url, damaged, examples, fits, namespace, record,
};

const STAT: Stat = Stat {
    czxid: 1,
    mzxid: 1,
    pzxid: 1,
    ctime: 0,
    mtime: 0,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeral_owner: 0,
    data_length: 0,
    num_children: 0,
};

fn check(data: &[u8]) {
    check_read(|data| format::read_record("/r", data, &STAT), format::record, data);
    check_read(|data| format::read_namespace("/n", data, &STAT), format::namespace, data);
}

#[test]
fn znodes_of_any_bytes() {
    bolero::check!().with_iterations(10_000).for_each(check);
}

#[test]
fn znodes_that_are_damaged() {
    let mut good: Vec<_> = examples().iter().map(|r| format::record(r).unwrap()).collect();
    good.push(format::namespace(&namespace()).unwrap());
    bolero::check!()
        .with_iterations(20_000)
        .with_type()
        .for_each(|(which, changes): &(u16, Changes)| check(&damaged(&good, *which, changes)));
}

#[test]
fn records_of_any_numbers() {
    bolero::check!().with_iterations(5_000).with_type().for_each(|numbers: &Numbers| {
        let record = record(numbers);
        match format::record(&record) {
            Ok(data) => assert_eq!(format::read_record("/r", &data, &STAT).unwrap(), record),
            Err(error) => assert!(error.is_permanent() && !fits(&record), "{error}"),
        }
        let _ = format::alive(&record);
    });
}

#[test]
fn names_of_any_text() {
    bolero::check!().with_iterations(10_000).with_type().for_each(
        |(name, number): &(String, u64)| {
            if let Some(machine) = format::read_machine(name) {
                assert_eq!(machine.to_string(), *name);
            }
            let fits = i64::try_from(*number).is_ok().then_some(*number);
            assert_eq!(format::read_machine(&number.to_string()), fits);
        },
    );
}

#[test]
fn urls_of_any_text() {
    bolero::check!().with_iterations(20_000).with_type().for_each(|around: &Around| {
        check_url(Target::parse, &["zookeeper"], around);
    });
}
