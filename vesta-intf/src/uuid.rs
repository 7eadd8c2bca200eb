//! IDs as UUIDs (RFC 9562) that sort as the IDs and contain all of their 64 bits.
//!
//! An ID of 16 hexadecimal digits `i`, and the Unix time in milliseconds of 12 digits `t`, become
//!
//! ```text
//! version 8   iiiiiiii-iiii-8iii-8i00-007665737461
//! version 7   tttttttt-tttt-7iii-8iii-iiiiiiiiii76
//! ```
//!
//! All other digits are fixed, so a UUID from elsewhere is refused: in version 8 by 58 bits, in version 7 by 10 bits
//! and by its time, which must be that of the ID. The fixed digits are the same in all UUIDs of a version. So the
//! texts of version 8 compare as the IDs do, and those of version 7 as time and ID, which is the same order in a layout
//! whose highest field is the time.

use crate::format::IdText;
use crate::{Field, FieldOrder, IdError, IdFormat, IdMeta};

/// The fixed digits of version 8; the last five bytes spell `vesta`.
const V8_HIGH: u64 = 0x8 << 12;
const V8_LOW: u64 = 0x8 << 60 | 0x76_6573_7461;
/// The fixed digits of version 7.
const V7_HIGH: u64 = 0x7 << 12;
const V7_LOW: u64 = 0x8 << 60 | 0x76;
/// Bits of an ID in the lower half of a UUID of version 7.
const V7_LOW_BITS: u64 = (1 << 52) - 1;
/// End of the 48 bits of milliseconds.
const V7_END: u64 = 1 << 48;

/// Length of the text.
pub(crate) const LENGTH: usize = 36;

/// The upper and the lower half of a UUID of version 8.
const fn of_id(id: u64) -> (u64, u64) {
    let high = id >> 16 << 16 | V8_HIGH | id >> 4 & 0xfff;
    (high, V8_LOW | (id & 0xf) << 56)
}

/// The ID of a UUID of version 8, if it is that of an ID.
pub(crate) fn id_of((high, low): (u64, u64)) -> Option<u64> {
    let id = high >> 16 << 16 | (high & 0xfff) << 4 | low >> 56 & 0xf;
    (of_id(id) == (high, low)).then_some(id)
}

pub(crate) fn format(id: u64) -> IdText {
    IdText::of_uuid(of_id(id))
}

pub(crate) fn parse(text: &str) -> Result<u64, IdError> {
    let id = canonical(text).map(id_of)?;
    id.ok_or_else(|| {
        let reason =
            "this UUID is not that of an ID: those have version 8 and end in 00-007665737461";
        IdError::invalid("id", reason)
    })
}

/// The halves of a UUID in its five groups.
fn canonical(text: &str) -> Result<(u64, u64), IdError> {
    let halves = halves(text).filter(|_| text.len() == LENGTH);
    halves.unwrap_or_else(|| {
        let reason =
            "a UUID takes 36 characters: five groups of 8, 4, 4, 4 and 12 hexadecimal digits";
        Err(IdError::invalid("id", reason))
    })
}

/// The halves of a UUID in five groups, or without hyphens; `None` for a text of another shape.
pub(crate) fn halves(text: &str) -> Option<Result<(u64, u64), IdError>> {
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    let digits = matches!(groups[..], [32] | [8, 4, 4, 4, 12]).then(|| text.replace('-', ""))?;
    let (high, low) = digits.split_at_checked(16)?;
    let half = |digits| IdFormat::Hex.parse(digits);
    Some(half(high).and_then(|high| Ok((high, half(low)?))))
}

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
        } else if layout.end().0 > V7_END {
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
        self.halves(id).map(IdText::of_uuid)
    }

    /// The ID of a UUID in five groups, in either case.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for `id` if the text is no UUID, or not that of an ID of this layout.
    pub fn parse(&self, text: &str) -> Result<u64, IdError> {
        let id = canonical(text).map(|halves| self.id_of(halves))?;
        id.ok_or_else(|| {
            let (name, layout) = (Self::NAME, self.0.name());
            let reason = format!("this UUID is not the {name} of an ID of the layout {layout}");
            IdError::invalid("id", reason)
        })
    }

    fn halves(&self, id: u64) -> Result<(u64, u64), IdError> {
        let fields = self.0.unpack(id)?;
        if fields.get(Field::Version) > 0 {
            let reason = format!("{} takes IDs with version 0", Self::NAME);
            return Err(IdError::invalid("id", reason));
        }
        let millis = self.0.moment_of(fields.time)?.0;
        Ok((
            millis << 16 | V7_HIGH | id >> 52,
            V7_LOW | (id & V7_LOW_BITS) << 8,
        ))
    }

    pub(crate) fn id_of(&self, (high, low): (u64, u64)) -> Option<u64> {
        let id = (high & 0xfff) << 52 | low >> 8 & V7_LOW_BITS;
        let right = self.halves(id).ok()?;
        (right == (high, low)).then_some(id)
    }
}
