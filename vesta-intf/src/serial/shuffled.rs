//! The permutation of a pattern's counters.

use super::pattern::{Counter, Network, Pattern};
use crate::{IdError, Shuffle, ShuffleKey};

impl Pattern {
    /// The permutation of its counters that a key decides; `None` if it does not shuffle. May take as long
    /// as [`Shuffle::new`]: keep it.
    ///
    /// # Errors
    /// As [`Shuffle::new`].
    pub fn shuffle(&self, key: ShuffleKey) -> Result<Option<Shuffle>, IdError> {
        let Counter { width, radix, shuffled, .. } = self.counter;
        let shuffle = shuffled.map(|network| match network {
            Network::Hmac => Shuffle::new(key, self.end_of_counters()),
            Network::Ff1 => Shuffle::ff1(key, radix.digits().symbols.len(), width),
        });
        shuffle.transpose()
    }
}
