//! Parts of an ID to assemble.

/// Parts of an ID to assemble: `time` and `seq` always, the others only to override the service's own
/// value. Replaces the five `makeId` overloads of the Java Vesta, whose arguments were easily swapped.
///
/// ```
/// use vesta_intf::MakeId;
///
/// let parts = MakeId { machine: Some(7), ..MakeId::new(94_990_103, 0) };
/// assert_eq!(parts.gen_method, None); // the service's own
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(rename_all = "camelCase", deny_unknown_fields)
)]
pub struct MakeId {
    /// Ticks since the layout's epoch, in the layout's unit.
    pub time: u64,
    /// The position inside the tick.
    pub seq: u64,
    /// The machine ID; the service's own if left out.
    #[cfg_attr(feature = "serde", serde(default))]
    pub machine: Option<u64>,
    /// The genMethod bits; the service's own if left out.
    #[cfg_attr(feature = "serde", serde(default))]
    pub gen_method: Option<u64>,
    /// The type bit, which also chooses between Vesta's two layouts; the service's own if left out.
    #[cfg_attr(feature = "serde", serde(default, rename = "type"))]
    pub id_type: Option<u64>,
    /// The version bit; the service's own if left out.
    #[cfg_attr(feature = "serde", serde(default))]
    pub version: Option<u64>,
}

impl MakeId {
    /// Parts with this time and sequence; everything else takes the service's value.
    pub const fn new(time: u64, seq: u64) -> Self {
        Self {
            time,
            seq,
            machine: None,
            gen_method: None,
            id_type: None,
            version: None,
        }
    }
}
