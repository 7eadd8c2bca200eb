//! Values of a tag's hash of arbitrary contents.

use super::{VALUES, decode};
use crate::fuzz::{Changes, damaged};

/// The numbers are read as they were written, byte by byte, or the tag is refused.
fn check(values: &[Vec<u8>]) {
    let Some(tag) = decode(values) else { return };
    let written = [tag.key, tag.max_id.to_string(), tag.step.to_string()].map(String::into_bytes);
    assert_eq!(written, values[..3]);
    assert_eq!(tag.description.is_none(), values[3].is_empty());
    if let Some(time) = tag.update_time {
        assert_eq!(time.0.to_string().into_bytes(), values[4]);
    }
}

#[test]
fn values_of_any_bytes() {
    bolero::check!().with_iterations(10_000).with_type().for_each(
        |(values, more): &([Vec<u8>; VALUES], Vec<Vec<u8>>)| {
            check(values);
            check(more);
        },
    );
}

#[test]
fn values_that_are_damaged() {
    let good = [
        ["orders", "1000", "100", "of the shop", "1700000000000"],
        ["订单", "-1", "0", "", ""],
        ["x", "9223372036854775807", "9223372036854775807", "y", "0"],
    ]
    .map(|values| values.map(|value| value.as_bytes().to_vec()));
    for values in &good {
        assert!(decode(values).is_some());
    }
    bolero::check!().with_iterations(20_000).with_type().for_each(
        |(which, at, changes): &(u8, u8, Changes)| {
            let mut values = good[usize::from(*which) % good.len()].clone();
            let one = &mut values[usize::from(*at) % VALUES];
            *one = damaged(std::slice::from_ref(one), 0, changes);
            check(&values);
        },
    );
}
