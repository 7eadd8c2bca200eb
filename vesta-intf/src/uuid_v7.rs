//! UUIDs of version 7 for the IDs of a layout.

use crate::format::IdText;
use crate::uuid::{self, Halves};
use crate::{Field, FieldOrder, IdError, IdFormat, IdMeta};

/// The fixed digits.
const HIGH: u64 = 0x7 << 12;
const LOW: u64 = 0x8 << 60 | 0x76;
/// Bits of an ID in the lower half.
const LOW_BITS: u64 = (1 << 52) - 1;
/// End of the 48 bits of milliseconds.
const END: u64 = 1 << 48;

/// UUIDs of version 7 for the IDs of one layout: text that sorts as the IDs, reads back exactly, and shows databases
/// the time of the ID (`uuid_extract_timestamp` of PostgreSQL 18).
///
/// ```
/// use vesta_intf::{IdMeta, UuidV7};
///
/// let uuids = UuidV7::new(&IdMeta::SNOWFLAKE)?;
/// let text = uuids.format(1_785_223_470_585_921_538)?;
/// assert_eq!(text.as_str(), "018f2e1a-2aa4-718c-8663-49b8f6c00276");
/// assert_eq!(uuids.parse(text.as_str())?, 1_785_223_470_585_921_538);
/// # Ok::<(), vesta_intf::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UuidV7(IdMeta);

impl UuidV7 {
    /// Name of the format in configurations and requests.
    pub const NAME: &'static str = "uuid-v7";

    /// The UUIDs of this layout.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `format` if another field than the version is above the time, or the time ends
    /// after the year 10889, as 48 bits of milliseconds do.
    pub fn new(layout: &IdMeta) -> Result<Self, IdError> {
        let spec = layout.spec();
        let machine_above = spec.order == FieldOrder::MachineTimeSeq && spec.machine_bits > 0;
        let why = if spec.type_bits > 0 || spec.gen_method_bits > 0 || machine_above {
            "has other fields above the time, so its IDs do not sort by time"
        } else if layout.end().0 > END {
            "ends after the year 10889, the end of UUIDs of version 7"
        } else {
            return Ok(Self(*layout));
        };
        let (name, use_other) = (layout.name(), IdFormat::Uuid);
        let reason =
            format!("the layout {name} {why}; use the format {use_other}, which fits every layout");
        Err(IdError::invalid("format", reason))
    }

    /// The UUID of an ID.
    ///
    /// # Errors
    /// [`IdError::Invalid`] or [`IdError::OutOfRange`] for `id` if it is not an ID of the layout with version 0.
    pub fn format(&self, id: u64) -> Result<IdText, IdError> {
        self.halves(id)
            .map(|halves| IdText::whole(uuid::format(halves)))
    }

    /// The ID of a UUID in five groups, in either case.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `id` if the text is no UUID, or not that of an ID of this layout.
    pub fn parse(&self, text: &str) -> Result<u64, IdError> {
        let id = self.id_of(uuid::parse(text)?);
        id.ok_or_else(|| {
            let (name, layout) = (Self::NAME, self.0.name());
            let reason = format!("this UUID is not the {name} of an ID of the layout {layout}");
            IdError::invalid("id", reason)
        })
    }

    fn halves(&self, id: u64) -> Result<Halves, IdError> {
        let fields = self.0.unpack(id)?;
        if fields.get(Field::Version) > 0 {
            let reason = format!("{} takes IDs with version 0", Self::NAME);
            return Err(IdError::invalid("id", reason));
        }
        let millis = self.0.moment_of(fields.time)?.0;
        Ok((millis << 16 | HIGH | id >> 52, LOW | (id & LOW_BITS) << 8))
    }

    /// The ID of a UUID as two halves, if it is one of this layout.
    #[doc(hidden)]
    pub fn id_of(&self, (high, low): Halves) -> Option<u64> {
        let id = (high & 0xfff) << 52 | low >> 8 & LOW_BITS;
        let right = self.halves(id).ok()?;
        (right == (high, low)).then_some(id)
    }
}
