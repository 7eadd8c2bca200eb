//! Values of a hash, and URLs, of arbitrary contents.

use super::super::address::Address;
use super::{VALUES, decode, encode};
use crate::fuzz::{Around, Changes, Numbers, check_url, damaged, examples, fits, record};

/// What is read is, byte by byte, what is written; everything else is refused for good.
fn check(values: &[Vec<u8>]) {
    match decode("k", values) {
        Ok(found) => {
            let written = encode(&found).expect("what was read fits").map(String::into_bytes);
            assert_eq!(written.as_slice(), values);
        }
        Err(error) => assert!(error.is_permanent(), "{error}"),
    }
}

#[test]
fn values_of_any_bytes() {
    bolero::check!().with_iterations(10_000).with_type().for_each(
        |(values, more): &([Vec<u8>; VALUES], Vec<Vec<u8>>)| {
            check(values);
            check(&[values, more.as_slice()].concat());
        },
    );
}

#[test]
fn values_that_are_damaged() {
    let good = examples().map(|record| encode(&record).unwrap().map(String::into_bytes));
    bolero::check!().with_iterations(20_000).with_type().for_each(
        |(which, at, changes): &(u8, u8, Changes)| {
            let mut values = good[usize::from(*which) % good.len()].clone();
            let one = &mut values[usize::from(*at) % VALUES];
            *one = damaged(std::slice::from_ref(one), 0, changes);
            check(&values);
        },
    );
}

#[test]
fn records_of_any_numbers() {
    bolero::check!().with_iterations(5_000).with_type().for_each(|numbers: &Numbers| {
        let record = record(numbers);
        match encode(&record) {
            Ok(values) => {
                assert_eq!(decode("k", &values.map(String::into_bytes)).unwrap(), record);
            }
            Err(error) => assert!(error.is_permanent() && !fits(&record), "{error}"),
        }
    });
}

#[test]
fn urls_of_any_text() {
    bolero::check!().with_iterations(20_000).with_type().for_each(|around: &Around| {
        check_url(Address::parse, &["redis", "rediss"], around);
    });
}
