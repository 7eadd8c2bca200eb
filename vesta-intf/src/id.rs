//! Fields of an ID, and runs of IDs.

use crate::Field;

/// Fields of an ID, as plain numbers: [`IdMeta::pack`](crate::IdMeta::pack) checks that each fits
/// its field, nothing is masked. A field that a layout does not have is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct Id {
    /// Generation method: see [`GenMethod`]. Vesta layouts only.
    pub gen_method: u64,
    /// The ID of the machine (worker) that made it.
    pub machine: u64,
    /// The position inside its tick.
    pub seq: u64,
    /// Ticks since the layout's epoch, in the layout's unit.
    pub time: u64,
    /// The layout among Vesta's two: see [`IdType`].
    #[cfg_attr(feature = "serde", serde(rename = "type"))]
    pub id_type: u64,
    /// The version bit; in other layouts the sign bit. 1 makes the ID negative as a signed number.
    pub version: u64,
}

impl Id {
    /// The value of a field.
    pub const fn get(&self, field: Field) -> u64 {
        match field {
            Field::Version => self.version,
            Field::Type => self.id_type,
            Field::GenMethod => self.gen_method,
            Field::Time => self.time,
            Field::Seq => self.seq,
            Field::Machine => self.machine,
        }
    }
}

/// Consecutive IDs as an arithmetic progression: `first, first + step, …`, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdRun {
    /// The first and smallest ID.
    pub first: u64,
    /// The distance between neighbours; at least 1.
    pub step: u64,
    /// Number of IDs; at least 1.
    pub count: u32,
}

impl IdRun {
    /// Appends the run to others: it is merged into the last of them if it follows that one without a gap.
    pub fn append_to(self, runs: &mut Vec<IdRun>) {
        let follows = |last: &&mut IdRun| {
            let length = u64::from(last.count).checked_mul(last.step);
            let next = length.and_then(|length| last.first.checked_add(length));
            last.step == self.step && next == Some(self.first)
        };
        match runs.last_mut().filter(follows) {
            Some(last) => last.count += self.count,
            None => runs.push(self),
        }
    }

    /// Writes the first IDs of the run, as many as fit into `out`.
    pub fn write_to(&self, out: &mut [u64]) {
        let mut id = self.first;
        for slot in out.iter_mut().take(self.iter().len()) {
            *slot = id;
            // May wrap after the last ID; that value is not written.
            id = id.wrapping_add(self.step);
        }
    }

    /// The IDs of the run, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + use<> {
        let Self { first, step, count } = *self;
        (0..count).map(move |i| first + u64::from(i) * step)
    }
}

/// Vesta's two layouts, distinguished by the type bit of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IdType {
    /// Time in seconds and 2^20 IDs in each: the layout for the highest peaks.
    MaxPeak = 0,
    /// Time in milliseconds and 2^10 IDs in each: the layout that sorts most finely.
    MinGranularity = 1,
}

impl IdType {
    /// The value of the type bit.
    pub const fn value(self) -> u64 {
        self as u64
    }
}

/// Generation method: the two genMethod bits of a Vesta ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum GenMethod {
    /// By the library inside the user's own process.
    #[default]
    Embed = 0,
    /// By a central server over gRPC.
    Central = 1,
    /// By a REST server.
    Rest = 2,
    /// By a database: the function of `vesta sql --generate`. The original Vesta reserves it.
    Database = 3,
}

impl GenMethod {
    /// The value of the genMethod bits.
    pub const fn value(self) -> u64 {
        self as u64
    }

    /// The method, for people.
    pub const fn name(self) -> &'static str {
        match self {
            GenMethod::Embed => "embedded",
            GenMethod::Central => "gRPC",
            GenMethod::Rest => "REST",
            GenMethod::Database => "database",
        }
    }

    /// The method with this value, if there is one.
    pub const fn from_value(value: u64) -> Option<Self> {
        match value {
            0 => Some(GenMethod::Embed),
            1 => Some(GenMethod::Central),
            2 => Some(GenMethod::Rest),
            3 => Some(GenMethod::Database),
            _ => None,
        }
    }
}
