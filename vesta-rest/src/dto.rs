//! Bodies of the endpoints of other systems. Vesta's own are `vesta_boot::answers`.

mod legacy;
pub(crate) mod tinyid;

pub use legacy::{LeafDecoded, SegmentCache, SegmentRow, UidParsed};
pub use tinyid::{TinyidNumbers, TinyidRange, TinyidSegment};
