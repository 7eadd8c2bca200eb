//! A store that owns every second number of its tags, as one of two databases that share them.

use vesta_numbers::segment::{NewSegmentTag, NextRange, SegmentStore, SegmentTag, Stride};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::lease::StoreError;

const EVEN: Stride = Stride {
    delta: 2,
    remainder: 0,
};

#[derive(Debug)]
pub(crate) struct EverySecond(pub(crate) MemorySegmentStore);

impl SegmentStore for EverySecond {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn tags(&self) -> Result<Vec<SegmentTag>, StoreError> {
        let tags = self.0.tags()?;
        Ok(tags
            .into_iter()
            .map(|tag| SegmentTag {
                stride: EVEN,
                ..tag
            })
            .collect())
    }

    fn next_range(&self, key: &str, step: u64) -> Result<NextRange, StoreError> {
        Ok(match self.0.next_range(key, step)? {
            NextRange::Numbers(numbers) => NextRange::Strided(numbers, EVEN),
            other => other,
        })
    }

    fn create(&self, tag: &NewSegmentTag) -> Result<bool, StoreError> {
        self.0.create(tag)
    }
}
