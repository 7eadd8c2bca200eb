//! The permutation of a pattern's counters.

use super::pattern::Pattern;
use crate::{IdError, Shuffle, ShuffleKey};

impl Pattern {
    /// The permutation of its counters that a key decides; `None` if it does not shuffle. May take as long
    /// as [`Shuffle::new`]: keep it.
    ///
    /// # Errors
    /// As [`Shuffle::new`].
    pub fn shuffle(&self, key: ShuffleKey) -> Result<Option<Shuffle>, IdError> {
        let shuffle = || Shuffle::new(key, self.end_of_counters());
        self.is_shuffled().then(shuffle).transpose()
    }
}
