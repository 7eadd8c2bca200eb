//! Entry of the pool file: 128 bytes that hold a record and a checksum. Numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 3 | CRC-32 of everything that follows |
//! | 4 to 7 | CRC-32 of the subject |
//! | 8 to 15 | the generation, which grows with each write |
//! | 16 to 108 | the record: namespace, owner, birth, epoch, from, bound, attempt, claimed, time, pid, released |
//! | 109 to 124 | the secret of its owner |
//! | 125 to 127 | zeros |
//!
//! Host and version of the record are left out: they inform people only, and the file never leaves its host.

use vesta_intf::UnixMillis;

use crate::lease::host_state::slot::Slot;
use crate::lease::{Record, Secret};

/// Size of an entry: 32 entries fill a page, so those of neighbouring machine IDs are written together.
pub(super) const ENTRY: usize = 128;

/// Contents of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Checksum of the [subject](Slot::subject).
    subject: u32,
    pub(super) generation: u64,
    pub(super) record: Record,
}

impl Entry {
    /// Makes the entry that remembers a slot.
    pub(super) fn of(slot: &Slot) -> Self {
        Self {
            subject: crc32fast::hash(slot.subject.as_bytes()),
            generation: slot.generation,
            record: Record {
                host: String::new(),
                version: String::new(),
                standby: None,
                ..slot.record
            },
        }
    }

    /// True if it is for this machine ID, namespace and layout.
    pub(super) fn is_of(&self, subject: &str) -> bool {
        self.subject == crc32fast::hash(subject.as_bytes())
    }

    /// Encodes the entry.
    pub(super) fn encode(&self) -> Vec<u8> {
        let record = &self.record;
        let mut fields = [
            &self.subject.to_le_bytes()[..],
            &self.generation.to_le_bytes(),
            &record.namespace.to_le_bytes(),
            &record.owner.to_le_bytes(),
            &record.birth.to_le_bytes(),
            &record.epoch.to_le_bytes(),
            &record.from.to_le_bytes(),
            &record.bound.to_le_bytes(),
            &record.attempt.to_le_bytes(),
            &record.claimed.0.to_le_bytes(),
            &record.info_time.0.to_le_bytes(),
            &record.pid.to_le_bytes(),
            &[record.released.into()],
            &record.secret.number().to_le_bytes(),
        ]
        .concat();
        fields.resize(ENTRY - size_of::<u32>(), 0);
        [&crc32fast::hash(&fields).to_le_bytes()[..], &fields].concat()
    }

    /// Decodes an entry; `None` if these are not the bytes of one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.get(size_of::<u32>()..)?;
        let subject = u32::from_le_bytes(take(&mut rest)?);
        let generation = u64::from_le_bytes(take(&mut rest)?);
        let [namespace, owner] = [take(&mut rest)?, take(&mut rest)?].map(u128::from_le_bytes);
        let mut number = || Some(u64::from_le_bytes(take(&mut rest)?));
        let record = Record {
            namespace,
            owner,
            birth: number()?,
            epoch: number()?,
            from: number()?,
            bound: number()?,
            attempt: number()?,
            claimed: UnixMillis(number()?),
            info_time: UnixMillis(number()?),
            pid: u32::from_le_bytes(take(&mut rest)?),
            released: take(&mut rest)? == [1],
            secret: Secret::new(u128::from_le_bytes(take(&mut rest)?)),
            ..Record::default()
        };
        let entry = Self {
            subject,
            generation,
            record,
        };
        (entry.encode() == bytes).then_some(entry) // checks the checksum too
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot {
            generation: 7,
            subject: "machine ID 1023 of namespace `orders` with layout max-peak".into(),
            record: Record {
                namespace: u128::MAX / 3,
                birth: u64::MAX / 5,
                epoch: 3,
                owner: u128::MAX - 1,
                from: 1 << 60,
                bound: 1 << 61,
                attempt: u64::MAX >> 1,
                released: true,
                host: "höst".into(),
                pid: 4711,
                version: "0.1.0".into(),
                claimed: UnixMillis(1_600_000_000_000),
                info_time: UnixMillis(1_700_000_000_000),
                standby: None,
                secret: Secret::new(u128::MAX / 7),
            },
        }
    }

    #[test]
    fn entry_round_trips_without_host_and_version() {
        let bytes = Entry::of(&slot()).encode();
        assert_eq!(bytes.len(), ENTRY);
        let back = Entry::decode(&bytes).unwrap();
        assert!(back.is_of(&slot().subject) && !back.is_of("another"));
        let expected = Record {
            host: String::new(),
            version: String::new(),
            ..slot().record
        };
        assert_eq!(back.record.secret.number(), u128::MAX / 7);
        assert_eq!((back.generation, back.record), (7, expected));
    }

    #[test]
    fn every_single_flipped_bit_is_noticed() {
        let good = Entry::of(&slot()).encode();
        for bit in 0..ENTRY * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::decode(&bad), None, "bit {bit}");
        }
    }

    #[test]
    fn unused_space_is_not_an_entry() {
        assert_eq!(Entry::decode(&[0; ENTRY]), None);
        assert_eq!(Entry::decode(&[]), None);
    }
}
