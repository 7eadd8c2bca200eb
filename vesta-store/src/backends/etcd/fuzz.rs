//! Responses with arbitrary contents.

use prost::Message as _;

use super::got;
use super::kv::entry;
use super::pb::response_op::Response;
use super::pb::{KeyValue, RangeResponse, ResponseOp, TxnResponse};
use crate::fuzz::{Changes, damaged};

/// Checks that a response is decoded as it was sent, or is an error.
fn check(bytes: &[u8]) {
    let Ok(answer) = TxnResponse::decode(bytes) else {
        return;
    };
    assert_eq!(
        TxnResponse::decode(&*answer.encode_to_vec()).unwrap(),
        answer
    );
    let Ok(range) = got(answer) else { return };
    for kv in range.kvs {
        let sent = (kv.key.clone(), kv.value.clone(), kv.lease);
        match entry(kv) {
            Ok((key, value)) => assert_eq!((key.into_bytes(), value.into_bytes(), 0), sent),
            Err(error) => assert!(error.is_permanent(), "{error}"),
        }
    }
}

#[test]
fn answers_of_any_bytes() {
    let value = br#"{"schema":1}"#.to_vec();
    let kv = KeyValue {
        key: b"vesta/lease/x/7".to_vec(),
        mod_revision: 9,
        value,
        lease: 0,
    };
    let range = RangeResponse {
        kvs: vec![kv],
        more: true,
    };
    let one = ResponseOp {
        response: Some(Response::ResponseRange(range)),
    };
    let good = TxnResponse {
        succeeded: true,
        responses: vec![one],
        ..TxnResponse::default()
    };
    let good = [good.encode_to_vec()];
    bolero::check!()
        .with_iterations(10_000)
        .with_type()
        .for_each(|changes: &Changes| check(&damaged(&good, 0, changes)));
}
