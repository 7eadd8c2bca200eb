//! Keys, values, answers and URLs of arbitrary contents.

use prost::Message as _;
use vesta_service::StoreError;

use super::client::got;
use super::format;
use super::pb::{KeyValue, RangeResponse, TxnResponse};
use super::target::Target;
use crate::fuzz::{
    Around, Changes, Numbers, check_read, check_url, damaged, examples, fits, namespace, record,
};

fn key_value(value: &[u8]) -> KeyValue {
    KeyValue { key: b"vesta/x/record/7".to_vec(), mod_revision: 9, value: value.into(), lease: 0 }
}

fn check(value: &[u8]) {
    check_read(|value| format::read_record(&key_value(value)), format::record, value);
    check_read(|value| format::read_namespace(&key_value(value)), format::namespace, value);
}

#[test]
fn values_of_any_bytes() {
    bolero::check!().with_iterations(10_000).for_each(check);
}

#[test]
fn values_that_are_damaged() {
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
            Ok(value) => assert_eq!(format::read_record(&key_value(&value)).unwrap(), record),
            Err(error) => assert!(error.is_permanent() && !fits(&record), "{error}"),
        }
    });
}

#[test]
fn keys_of_any_bytes() {
    bolero::check!().with_iterations(10_000).with_type().for_each(
        |(name, number): &(Vec<u8>, u64)| {
            let read = |name: &[u8]| format::read_machine(&key_value(b""), name);
            if let Ok(machine) = read(name) {
                assert_eq!(format::machine(machine).unwrap().as_bytes(), name);
            }
            for number in [*number, number >> 1] {
                let made = format::machine(number).ok();
                assert_eq!(made.map(|name| read(name.as_bytes()).unwrap()), {
                    i64::try_from(number).is_ok().then_some(number)
                });
            }
        },
    );
}

/// An answer that is not etcd's is an error that does not pass.
fn check_answer(bytes: &[u8]) {
    let Ok(answer) = TxnResponse::decode(bytes) else { return };
    assert_eq!(TxnResponse::decode(&*answer.encode_to_vec()).unwrap(), answer);
    match got::<2>(answer) {
        Ok(ranges) => ranges.iter().flat_map(|range| &range.kvs).for_each(|kv| check(&kv.value)),
        Err(failure) => drop(format!("{failure:?}")),
    }
}

#[test]
fn answers_of_any_bytes() {
    let value = format::record(&examples()[1]).unwrap();
    let range = RangeResponse { kvs: vec![key_value(&value)], more: true };
    let good = [answer([range.clone(), range]).encode_to_vec()];
    bolero::check!().with_iterations(10_000).with_type().for_each(|changes: &Changes| {
        check_answer(&damaged(&good, 0, changes));
    });
}

fn answer(ranges: [RangeResponse; 2]) -> TxnResponse {
    use super::pb::ResponseOp;
    use super::pb::response_op::Response;
    let responses =
        ranges.map(|range| ResponseOp { response: Some(Response::ResponseRange(range)) });
    TxnResponse { succeeded: true, responses: responses.into(), ..TxnResponse::default() }
}

#[test]
fn urls_of_any_text() {
    bolero::check!().with_iterations(20_000).with_type().for_each(|around: &Around| {
        check_url(Target::parse, &["etcd", "etcds"], around);
    });
}

/// A reader that takes a damaged record for one that was never claimed.
fn planted(value: &[u8]) -> Result<vesta_service::Record, StoreError> {
    let refused = StoreError::unavailable("damaged", std::io::Error::other("try again"));
    format::read_record(&key_value(value)).map_err(|_| refused)
}

#[test]
#[should_panic(expected = "test failed")]
fn a_reader_that_tries_a_damaged_value_again_is_noticed() {
    let good = [format::record(&examples()[1]).unwrap()];
    bolero::check!()
        .with_iterations(20_000)
        .with_shrink_time(std::time::Duration::ZERO)
        .with_type()
        .for_each(|changes: &Changes| {
            check_read(planted, format::record, &damaged(&good, 0, changes));
        });
}
