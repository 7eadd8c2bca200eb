//! Fields of an ID and their order.

/// A field of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the fields of Id")]
pub enum Field {
    Version,
    Type,
    GenMethod,
    Time,
    Seq,
    Machine,
}

impl Field {
    /// Name of the field in errors, in JSON and in the printed layout.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Version => "version",
            Field::Type => "type",
            Field::GenMethod => "genMethod",
            Field::Time => "time",
            Field::Seq => "seq",
            Field::Machine => "machine",
        }
    }
}

/// The order of time, sequence and machine, most significant first. Version, type and genMethod are
/// always above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum FieldOrder {
    /// Time, sequence, machine: Vesta, Sonyflake.
    #[default]
    TimeSeqMachine,
    /// Time, machine, sequence: Twitter's snowflake, Leaf, uid-generator.
    TimeMachineSeq,
    /// Machine, time, sequence: the order in older Vesta documents. Such IDs sort by machine before
    /// time, so they can be explained and assembled, but not generated.
    MachineTimeSeq,
}

impl FieldOrder {
    /// The three fields, most significant first.
    pub const fn fields(self) -> [Field; 3] {
        match self {
            FieldOrder::TimeSeqMachine => [Field::Time, Field::Seq, Field::Machine],
            FieldOrder::TimeMachineSeq => [Field::Time, Field::Machine, Field::Seq],
            FieldOrder::MachineTimeSeq => [Field::Machine, Field::Time, Field::Seq],
        }
    }

    /// True if IDs that agree in the fields above the time sort by time.
    pub const fn sorts_by_time(self) -> bool {
        matches!(self.fields()[0], Field::Time)
    }
}
