//! Text forms of a layout: for display, and as a fingerprint in records.

use std::fmt;

use super::IdMeta;
use crate::{Field, FieldOrder};

impl IdMeta {
    /// Fingerprint that all generators of one namespace must share: widths, order, unit, epoch and region.
    pub fn fingerprint(&self) -> String {
        let s = &self.spec;
        let order = match s.order {
            FieldOrder::TimeSeqMachine => "tsm",
            FieldOrder::TimeMachineSeq => "tms",
            FieldOrder::MachineTimeSeq => "mts",
        };
        let (length, unit) = match s.unit.micros() {
            micros if micros < 1000 => (micros, "us"),
            micros => (micros / 1000, "ms"),
        };
        let (widths, region) = (s.widths().map(|it| it.to_string()), self.region_text(" "));
        format!(
            "{} {order} {length}{unit} @{}{region}",
            widths.join("/"),
            s.epoch.0
        )
    }

    /// `region 2 of 8`, after a separator; nothing without a region.
    fn region_text(&self, separator: &str) -> String {
        match self.region {
            (0, _) => String::new(),
            (bits, region) => format!("{separator}region {region} of {}", 1u128 << bits),
        }
    }
}

/// `snowflake (version 1 + time 41 + machine 10 + seq 12 bits, millisecond)`.
impl fmt::Display for IdMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", self.name)?;
        let always = |field| matches!(field, Field::Time | Field::Seq | Field::Machine);
        let shown = |field: &Field| self.bits(*field) > 0 || always(*field);
        for (i, field) in self.fields().into_iter().filter(shown).enumerate() {
            let plus = if i > 0 { " + " } else { "" };
            write!(f, "{plus}{} {}", field.name(), self.bits(field))?;
        }
        write!(f, " bits, {}{})", self.spec.unit, self.region_text(", "))
    }
}
