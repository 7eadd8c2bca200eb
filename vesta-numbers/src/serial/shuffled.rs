//! The permutation of a pattern's counters.

use super::pattern::Pattern;
use vesta_intf::{IdError, Shuffle, ShuffleKey};

impl Pattern {
    /// The permutation of the counters, as selected by a key; `None` if the pattern does not shuffle. May
    /// take as long as [`Shuffle::new`]; keep the result.
    ///
    /// # Errors
    /// As for [`Shuffle::new`].
    pub fn shuffle(&self, key: ShuffleKey) -> Result<Option<Shuffle>, IdError> {
        let shuffle = || Shuffle::new(key, self.end_of_counters());
        self.is_shuffled().then(shuffle).transpose()
    }
}
