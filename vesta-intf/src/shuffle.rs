//! Shuffled numbers: a secret permutation of 0 to N − 1, so that consecutive numbers look random.
//!
//! A Feistel network of ten rounds with HMAC-SHA256 as its round function permutes the numbers of 2b bits, where
//! b is the smallest with 2^2b ≥ N. A result of N or more is permuted again (cycle walking, J. Black and P.
//! Rogaway 2002), four times at most on average. Without the key, the permutation cannot be distinguished from a
//! random one, provided that HMAC-SHA256 is a pseudorandom function; NIST's FF1 (SP 800-38G) has ten rounds too.

use std::fmt;
use std::sync::Arc;

use sha2::block_api::compress256;

use crate::IdError;

const ROUNDS: u8 = 10;

/// Halves of up to this many bits use a table of all values of the round function, at most 1.3 MB: a
/// number then costs a twentieth.
const TABLE_BITS: u32 = 16;

/// A secret key of 256 bits. It is never printed; [`fingerprint`](Self::fingerprint) distinguishes it from others.
#[derive(Clone, PartialEq, Eq)]
pub struct ShuffleKey {
    /// States of HMAC-SHA256 after the key block.
    inner: [u32; 8],
    outer: [u32; 8],
}

/// The permutation of 0 to `size` − 1 that a key selects.
///
/// ```
/// use vesta_intf::{Shuffle, ShuffleKey};
///
/// let key = ShuffleKey::from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
/// let coupons = Shuffle::new(key, 100_000_000)?;
/// assert_eq!([1, 2, 3].map(|n| coupons.shuffle(n)), [48_066_486, 32_683_105, 29_330_371]);
/// assert_eq!(coupons.restore(48_066_486), 1);
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
#[derive(Clone)]
pub struct Shuffle {
    key: ShuffleKey,
    /// The largest number.
    last: u64,
    /// Bits of each half.
    bits: u32,
    /// Round function by round and half; empty if there are too many values.
    table: Arc<[u16]>,
}

impl ShuffleKey {
    /// A key of 32 bytes, drawn at random by the caller.
    pub fn new(key: &[u8; 32]) -> Self {
        let padded = |pad: u8| {
            let mut block = [pad; 64];
            block
                .iter_mut()
                .zip(key)
                .for_each(|(byte, key)| *byte ^= key);
            hash(&INITIAL, &block)
        };
        Self {
            inner: padded(0x36),
            outer: padded(0x5c),
        }
    }

    /// A key of 64 hexadecimal digits, as in a key file; surrounding white space is ignored.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `key`, without any part of the key.
    pub fn from_hex(text: &str) -> Result<Self, IdError> {
        let text = text.trim().as_bytes();
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|it| u8::try_from(it).ok())
        };
        let mut key = [0; 32];
        let mut good = text.len() == 64;
        for (byte, pair) in key.iter_mut().zip(text.chunks_exact(2)) {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => good = false,
            }
        }
        let reason = "it must be 64 hexadecimal digits";
        if good {
            Ok(Self::new(&key))
        } else {
            Err(IdError::invalid("key", reason))
        }
    }

    /// Eight bytes as hexadecimal digits that identify this key and reveal nothing more about it.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", self.hmac(b"vesta shuffle key fingerprint"))
    }

    /// The first eight bytes of HMAC-SHA256 of a message of at most 55 bytes.
    fn hmac(&self, message: &[u8]) -> u64 {
        let inner = hash(&self.inner, &last_block(message));
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(inner) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        let outer = hash(&self.outer, &last_block(&digest));
        u64::from(outer[0]) << 32 | u64::from(outer[1])
    }
}

impl fmt::Debug for ShuffleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShuffleKey({})", self.fingerprint())
    }
}

impl Shuffle {
    /// The permutation of 0 to `size` − 1. Takes up to 60 ms where a table of up to 1.3 MB makes numbers
    /// cheap, for sizes up to 2^32; keep the result.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] for `size` if it is not 1 to 2^63.
    pub fn new(key: ShuffleKey, size: u64) -> Result<Self, IdError> {
        IdError::check("size", size, 1, 1 << 63)?;
        Ok(Self::up_to(key, size - 1))
    }

    /// The permutation of all numbers of 64 bits, for IDs that must not be counted or guessed.
    pub fn of_all(key: ShuffleKey) -> Self {
        Self::up_to(key, u64::MAX)
    }

    fn up_to(key: ShuffleKey, last: u64) -> Self {
        let bits = (64 - last.leading_zeros()).div_ceil(2);
        let mut shuffle = Self {
            key,
            last,
            bits,
            table: Arc::default(),
        };
        if bits <= TABLE_BITS {
            let halves = |round| (0..1u64 << bits).map(move |half| (round, half));
            let value = |(round, half)| u16::try_from(shuffle.compute(round, half)).ok();
            // A value has as many bits as a half: none is truncated.
            shuffle.table = (0..ROUNDS).flat_map(halves).filter_map(value).collect();
        }
        shuffle
    }

    /// The shuffled number of `number`.
    ///
    /// # Panics
    /// If the number is not below the size.
    pub fn shuffle(&self, number: u64) -> u64 {
        assert!(number <= self.last, "{number} is above {}", self.last);
        self.walk(number, |this, number| {
            let (mut left, mut right) = this.halves(number);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ this.round(round, right));
            }
            left << this.bits | right
        })
    }

    /// Inverse of [`shuffle`](Self::shuffle): the number with this shuffled number.
    ///
    /// # Panics
    /// If the shuffled number is not below the size.
    pub fn restore(&self, shuffled: u64) -> u64 {
        assert!(shuffled <= self.last, "{shuffled} is above {}", self.last);
        self.walk(shuffled, |this, number| {
            let (mut left, mut right) = this.halves(number);
            for round in (0..ROUNDS).rev() {
                (left, right) = (right ^ this.round(round, left), left);
            }
            left << this.bits | right
        })
    }

    /// Permutes until the number is in range again: its cycle returns to the start at the latest.
    fn walk(&self, mut number: u64, permute: impl Fn(&Self, u64) -> u64) -> u64 {
        loop {
            number = permute(self, number);
            if number <= self.last {
                return number;
            }
        }
    }

    const fn halves(&self, number: u64) -> (u64, u64) {
        (number >> self.bits, number & self.mask())
    }

    const fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    #[inline]
    fn round(&self, round: u8, half: u64) -> u64 {
        let place = usize::try_from(u64::from(round) << self.bits | half);
        match place.ok().and_then(|place| self.table.get(place)) {
            Some(value) => (*value).into(),
            None => self.compute(round, half),
        }
    }

    fn compute(&self, round: u8, half: u64) -> u64 {
        let mut message = [0; 10];
        (message[0], message[1]) = (round, self.bits.to_le_bytes()[0]);
        message[2..].copy_from_slice(&half.to_be_bytes());
        self.key.hmac(&message) & self.mask()
    }
}

impl fmt::Debug for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shuffle(0 to {})", self.last)
    }
}

/// The initial state of SHA-256: FIPS 180-4, 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The state after one more block. The `hmac` crate costs half as much again for messages this
/// short: here the states of the key are computed once for all messages.
fn hash(state: &[u32; 8], block: &[u8; 64]) -> [u32; 8] {
    let mut state = *state;
    compress256(&mut state, std::slice::from_ref(block));
    state
}

/// A message of at most 55 bytes that follows the key block, with its padding.
fn last_block(message: &[u8]) -> [u8; 64] {
    let mut block = [0; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[56..].copy_from_slice(&((64 + message.len()) as u64 * 8).to_be_bytes());
    block
}
