//! NIST's permutation, FF1, as the crate `fpe` has it.

use std::sync::Arc;

use aes::Aes256;
use fpe::ff1::{FF1, FlexibleNumeralString, NumeralStringError};

/// The permutation of the numbers with so many digits of a radix.
#[derive(Clone)]
pub(super) struct Ff1 {
    cipher: Arc<FF1<Aes256>>,
    radix: u64,
    digits: usize,
}

type Permuted = Result<FlexibleNumeralString, NumeralStringError>;

impl Ff1 {
    /// The caller has checked radix and digits.
    pub(super) fn new(key: &[u8; 32], radix: u64, digits: usize) -> Self {
        let cipher = u32::try_from(radix).ok().and_then(|radix| FF1::new(key, radix).ok());
        Self { cipher: Arc::new(cipher.expect("a radix of 2 to 62")), radix, digits }
    }

    pub(super) fn shuffle(&self, number: u64) -> u64 {
        self.permute(number, |numerals| self.cipher.encrypt(&[], numerals))
    }

    pub(super) fn restore(&self, shuffled: u64) -> u64 {
        self.permute(shuffled, |numerals| self.cipher.decrypt(&[], numerals))
    }

    fn permute(&self, mut number: u64, by: impl FnOnce(&FlexibleNumeralString) -> Permuted) -> u64 {
        let mut numerals = vec![0; self.digits];
        for numeral in numerals.iter_mut().rev() {
            *numeral = u16::try_from(number % self.radix).unwrap_or(0); // below 62
            number /= self.radix;
        }
        let permuted = by(&numerals.into()).expect("numerals of the radix, for a million at least");
        let permuted: Vec<u16> = permuted.into();
        permuted.iter().fold(0, |number, numeral| number * self.radix + u64::from(*numeral))
    }
}
