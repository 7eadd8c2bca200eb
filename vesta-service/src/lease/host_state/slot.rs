//! One half of a state file: 512 bytes that hold a record and a checksum.
//!
//! ```text
//!    0  magic        8 bytes  "VESTA\0ST"
//!    8  version      4        1
//!   12  pid          4
//!   16  generation   8        grows with each write; the higher of two good slots counts
//!   24  machine      8
//!   32  epoch        8
//!   40  owner       16
//!   56  bound        8
//!   64  attempt      8
//!   72  info time    8        milliseconds since 1970
//!   80  released     8        0 or 1
//!   88  namespace    2 + 64   length, text
//!  154  fingerprint  2 + 94   length, text
//!  250  host         2 + 230  length, text, cut to fit
//!  482  (2 bytes, zero)
//!  484  birth        8
//!  492  uuid        16        of the namespace that acknowledged it; 0: the file stands for itself
//!  508  CRC-32       4        of the bytes before
//! ```
//! All numbers are little-endian.

use vesta_intf::UnixMillis;

use crate::lease::Record;

pub(super) const SLOT: usize = 512;
const MAGIC: &[u8; 8] = b"VESTA\0ST";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = SLOT - 4;
pub(super) const MAX_NAMESPACE: usize = 64;
const MAX_FINGERPRINT: usize = 94;
const MAX_HOST: usize = 230;

/// The machine ID that a state file is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) namespace: String,
    pub(super) fingerprint: String,
    pub(super) machine: u64,
}

/// The contents of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) subject: Subject,
    pub(super) generation: u64,
    pub(super) record: Record,
}

impl Slot {
    pub(super) fn encode(&self) -> [u8; SLOT] {
        let mut out = [0; SLOT];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        let record = &self.record;
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &record.pid.to_le_bytes());
        put(16, &self.generation.to_le_bytes());
        put(24, &self.subject.machine.to_le_bytes());
        put(32, &record.epoch.to_le_bytes());
        put(40, &record.owner.to_le_bytes());
        put(56, &record.bound.to_le_bytes());
        put(64, &record.attempt.to_le_bytes());
        put(72, &record.info_time.0.to_le_bytes());
        put(80, &u64::from(record.released).to_le_bytes());
        put(484, &record.birth.to_le_bytes());
        put(492, &record.namespace.to_le_bytes());
        let mut put_text = |at: usize, text: &str, max: usize| {
            let mut end = text.len().min(max);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            // At most 254, so it fits.
            put(at, &u16::try_from(end).unwrap_or(0).to_le_bytes());
            put(at + 2, &text.as_bytes()[..end]);
        };
        put_text(88, &self.subject.namespace, MAX_NAMESPACE);
        put_text(154, &self.subject.fingerprint, MAX_FINGERPRINT);
        put_text(250, &record.host, MAX_HOST);
        let checksum = crc32fast::hash(&out[..CHECKSUM_AT]);
        out[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// `None` if the bytes are not a whole slot of this version.
    pub(super) fn decode(bytes: &[u8; SLOT]) -> Option<Self> {
        let checksum = u32::from_le_bytes(take(bytes, CHECKSUM_AT)?);
        let sound = bytes.starts_with(MAGIC)
            && u32::from_le_bytes(take(bytes, 8)?) == VERSION
            && crc32fast::hash(&bytes[..CHECKSUM_AT]) == checksum;
        if !sound {
            return None;
        }
        let number = |at| take(bytes, at).map(u64::from_le_bytes);
        let text = |at: usize, max: usize| {
            let length = usize::from(u16::from_le_bytes(take(bytes, at)?));
            let text = bytes.get(at + 2..at + 2 + length).filter(|_| length <= max)?;
            std::str::from_utf8(text).ok().map(str::to_owned)
        };
        Some(Self {
            subject: Subject {
                namespace: text(88, MAX_NAMESPACE)?,
                fingerprint: text(154, MAX_FINGERPRINT)?,
                machine: number(24)?,
            },
            generation: number(16)?,
            record: Record {
                epoch: number(32)?,
                owner: u128::from_le_bytes(take(bytes, 40)?),
                bound: number(56)?,
                attempt: number(64)?,
                released: number(80)? == 1,
                host: text(250, MAX_HOST)?,
                pid: u32::from_le_bytes(take(bytes, 12)?),
                info_time: UnixMillis(number(72)?),
                birth: number(484)?,
                namespace: u128::from_le_bytes(take(bytes, 492)?),
            },
        })
    }
}

fn take<const N: usize>(bytes: &[u8; SLOT], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot {
            subject: Subject {
                namespace: "orders".into(),
                fingerprint: vesta_intf::IdMeta::MAX_PEAK.fingerprint(),
                machine: 1023,
            },
            generation: 7,
            record: Record {
                epoch: 3,
                owner: u128::MAX - 1,
                bound: 1 << 61,
                attempt: u64::MAX >> 1,
                released: true,
                host: "höst".repeat(80),
                pid: 4711,
                info_time: UnixMillis(1_700_000_000_000),
                birth: u64::MAX / 5,
                namespace: u128::MAX / 3,
            },
        }
    }

    #[test]
    fn it_comes_back_as_it_was_but_for_a_long_host_name() {
        for prefix in ["", "h", "hö", "hös"] {
            let mut expected = slot();
            expected.record.host = format!("{prefix}{}", "中".repeat(100));
            let back = Slot::decode(&expected.encode()).unwrap();
            let whole = prefix.len() + (MAX_HOST - prefix.len()) / 3 * 3;
            expected.record.host.truncate(whole);
            assert_eq!(back, expected, "cut after the last whole character that fits");
        }
    }

    #[test]
    fn every_single_flipped_bit_is_noticed() {
        let good = slot().encode();
        for bit in 0..SLOT * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::decode(&bad), None, "bit {bit}");
        }
    }
}
