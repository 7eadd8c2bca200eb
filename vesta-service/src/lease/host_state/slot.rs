//! Slot: one half of a state file, a kilobyte of text that holds a record and a checksum.
//!
//! ```text
//! 5a3c09e1 7 machine ID 7 of namespace `orders` with layout …
//! {"schema":1,"namespace":…}
//! 00000000000000000000000000000000
//! ```
//! The CRC-32 of everything that follows it comes first, then the generation, which grows with each
//! write. Of two good slots the one with the higher generation counts. The secret of the record's owner comes last,
//! and blanks fill the rest.

use crate::lease::{Entry as _, Record, Secret};

pub(super) const SLOT: usize = 1024;
pub(super) const CHECKSUM: usize = 8;

/// The contents of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) generation: u64,
    /// Machine ID that the file is for, with its namespace and layout.
    pub(super) subject: String,
    pub(super) record: Record,
}

impl Slot {
    /// Encodes the slot. A host name that is too long is cut.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self {
            generation,
            subject,
            record,
        } = self;
        let mut record = record.clone();
        let mut text = loop {
            let secret = record.secret.number();
            let text = format!(
                " {generation} {subject}\n{}\n{secret:032x}\n",
                record.encode()
            );
            if text.len() <= SLOT - CHECKSUM || record.host.pop().is_none() {
                break text.into_bytes();
            }
        };
        text.resize(SLOT - CHECKSUM, b' ');
        [checksum(&text).as_bytes(), &text].concat()
    }

    /// Decodes a slot; `None` if these are not the bytes of one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes.get(CHECKSUM..)?).ok()?;
        let (head, rest) = text.trim().split_once('\n')?;
        let (record, secret) = rest.split_once('\n')?;
        let (generation, subject) = head.split_once(' ')?;
        let mut record = Record::decode(record).ok()?;
        record.secret = Secret::new(u128::from_str_radix(secret, 16).ok()?);
        let slot = Self {
            generation: generation.parse().ok()?,
            subject: subject.into(),
            record,
        };
        (slot.encode() == bytes).then_some(slot) // checks the checksum too
    }
}

pub(super) fn checksum(text: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(text))
}

#[cfg(test)]
mod tests {
    use vesta_intf::UnixMillis;

    use super::*;

    fn slot() -> Slot {
        Slot {
            generation: 7,
            subject: "machine ID 1023 of namespace `orders` with layout max-peak".into(),
            record: Record {
                epoch: 3,
                owner: u128::MAX - 1,
                bound: 1 << 61,
                attempt: u64::MAX >> 1,
                released: true,
                host: "höst".into(),
                pid: 4711,
                from: 1 << 60,
                version: "0.1.0".into(),
                claimed: UnixMillis(1_600_000_000_000),
                info_time: UnixMillis(1_700_000_000_000),
                birth: u64::MAX / 5,
                namespace: u128::MAX / 3,
                standby: None,
                secret: Secret::new(u128::MAX / 7),
            },
        }
    }

    #[test]
    fn slot_round_trips_except_for_a_long_host_name() {
        let back = Slot::decode(&slot().encode());
        assert_eq!(back, Some(slot()));
        assert_eq!(back.unwrap().record.secret.number(), u128::MAX / 7);
        for prefix in ["", "h", "hö", "hös"] {
            let mut expected = slot();
            expected.record.host = format!("{prefix}{}", "中".repeat(500));
            let mut back = Slot::decode(&expected.encode()).unwrap();
            let cut = expected.record.host.split_off(back.record.host.len());
            assert_eq!(back, expected);
            assert!(
                cut.len() > 500 && cut.chars().all(|c| c == '中'),
                "whole characters"
            );
            back.record.host.push('中');
            assert_ne!(
                Slot::decode(&back.encode()),
                Some(back),
                "no further character fits"
            );
        }
    }

    #[test]
    fn every_single_flipped_bit_is_noticed() {
        let good = slot().encode();
        for bit in 0..SLOT * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::decode(&bad), None, "bit {bit}");
        }
    }
}
