//! The error codes of PostgreSQL.

use crate::backends::sql::Class;

pub(super) fn class(state: &str) -> Class {
    match state {
        // Not serializable; a deadlock; a lock wait that took too long; a table in change.
        "40001" | "40P01" | "55P03" | "55006" => Class::Contended,
        // A row; a table; the type of a table.
        "23505" | "42P07" | "42710" => Class::Exists,
        "25006" => Class::ReadOnly,
        // The user or the password; the database; a schema; no privilege.
        "28000" | "28P01" | "3D000" | "3F000" | "42501" => Class::Denied,
        // An index or a page that is damaged; the first of the class is any failure inside.
        "XX001" | "XX002" => Class::Refused,
        // The connection; an undone transaction; resources; an operator; the system around.
        _ if ["08", "40", "53", "57", "58", "XX"].iter().any(|class| state.starts_with(class)) => {
            Class::Unavailable
        }
        _ => Class::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_told_from_what_needs_a_person() {
        for (state, expected) in [
            ("40001", Class::Contended),
            ("40P01", Class::Contended),
            ("40003", Class::Unavailable),
            ("23505", Class::Exists),
            ("25006", Class::ReadOnly),
            ("28P01", Class::Denied),
            ("53300", Class::Unavailable),
            ("57P01", Class::Unavailable),
            ("57P03", Class::Unavailable),
            ("42P01", Class::Refused),
            ("XX001", Class::Refused),
        ] {
            assert_eq!(class(state), expected, "{state}");
        }
    }
}
