//! Secret of an owner. The store shows its hash only, so a reader of a record cannot change it over a pool server.
//!
//! SHA-256 of one block is written out here: its crate would bring six more into every program that embeds Vesta.

use std::fmt;

/// Secret of an owner; zero stands for none.
///
/// All secrets are equal: records are compared by what a store keeps of them, and it keeps no secret.
#[derive(Clone, Copy, Default)]
pub struct Secret(u128);

impl Secret {
    /// The secret with these random bits.
    pub const fn new(random: u128) -> Self {
        Self(random)
    }

    /// Reads a secret that was sent; `None` if it has not 16 bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self(u128::from_be_bytes(bytes.try_into().ok()?)))
    }

    /// The bytes to send; `None` if there is no secret.
    pub fn bytes(self) -> Option<[u8; 16]> {
        (self.0 != 0).then(|| self.0.to_be_bytes())
    }

    pub(crate) const fn number(self) -> u128 {
        self.0
    }

    /// The owner that it proves: neither none nor a foreign one.
    pub fn owner(self) -> u128 {
        let [a, b, c, d, ..] = self.digest(b"owner").map(u128::from);
        (a << 96 | b << 64 | c << 32 | d).clamp(1, u128::MAX - 1)
    }

    /// The attempt that it proves, of a change of a tag. At most 63 bits, as with any attempt.
    pub fn attempt(self) -> u64 {
        let [a, b, ..] = self.digest(b"taker").map(u64::from);
        (a << 32 | b) >> 1
    }

    /// SHA-256 of a use and the secret.
    fn digest(self, of: &[u8; 5]) -> [u32; 8] {
        let mut block = [0; 64];
        block[..5].copy_from_slice(of);
        block[5..21].copy_from_slice(&self.0.to_be_bytes());
        block[21] = 0x80;
        block[63] = 21 * 8;
        sha256_of_block(&block)
    }
}

impl PartialEq for Secret {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// SHA-256 (FIPS 180-4) of a message that fills one block with its padding.
fn sha256_of_block(block: &[u8; 64]) -> [u32; 8] {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for t in 16..64 {
        let (near, far) = (words[t - 2], words[t - 15]);
        let s0 = far.rotate_right(7) ^ far.rotate_right(18) ^ far >> 3;
        let s1 = near.rotate_right(17) ^ near.rotate_right(19) ^ near >> 10;
        words[t] = words[t - 16]
            .wrapping_add(s0)
            .wrapping_add(words[t - 7])
            .wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = START;
    for (word, constant) in words.iter().zip(ROUNDS) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let one = h
            .wrapping_add(s1)
            .wrapping_add(choice)
            .wrapping_add(constant)
            .wrapping_add(*word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = s0.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
    }
    let mut hash = START;
    for (sum, word) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(word);
    }
    hash
}

const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf abc | sha256sum` and `sha256sum </dev/null`.
    #[test]
    fn the_hash_is_sha_256() {
        for (message, digest) in [
            (
                &b"abc"[..],
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                b"",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
        ] {
            let mut block = [0; 64];
            block[..message.len()].copy_from_slice(message);
            block[message.len()] = 0x80;
            block[63] = u8::try_from(message.len() * 8).expect("short");
            let hash = sha256_of_block(&block).map(|word| format!("{word:08x}"));
            assert_eq!(hash.concat(), digest);
        }
    }

    /// `printf 'owner0123456789abcdef' | sha256sum`
    #[test]
    fn an_owner_is_the_hash_of_its_secret_and_debug_shows_neither() {
        let secret = Secret::read(b"0123456789abcdef").expect("16 bytes");
        assert_eq!(
            format!("{:032x}", secret.owner()),
            "ebad9a98617c14c2c2179e1ea3a335c5"
        );
        assert_ne!(secret.owner(), Secret::new(secret.number() ^ 1).owner());
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_eq!(secret.bytes(), Some(*b"0123456789abcdef"));
        assert!(Secret::read(b"short").is_none() && Secret::default().bytes().is_none());
        assert!(secret.attempt() < 1 << 63);
    }
}
