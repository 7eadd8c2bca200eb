//! The error codes of PostgreSQL.

use crate::backends::sql::Class;

pub(super) fn class(state: &str) -> Class {
    match state {
        // Not serializable; a deadlock; a lock wait that took too long; a table in change.
        "40001" | "40P01" | "55P03" | "55006" => Class::Contended,
        // A row; a table; the type of a table.
        "23505" | "42P07" | "42710" => Class::Exists,
        "25006" => Class::ReadOnly,
        // The password; the database.
        "28P01" | "3D000" => Class::Denied,
        // A user who may not log in; no privilege; a schema, a table or a function that is missing;
        // something that a managed database does not do.
        "28000" | "42501" | "3F000" | "42P01" | "42883" | "0A000" => Class::Refused,
        // Syntax; an index or a page that is damaged.
        "42601" | "XX001" | "XX002" => Class::Unfit,
        // Also those of poolers, and of servers to come: nothing says that they do not pass.
        _ => Class::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wrong_setting_or_damage_ends_a_start() {
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
            ("28000", Class::Refused),
            ("42501", Class::Refused),
            ("42P01", Class::Refused),
            ("XX001", Class::Unfit),
            // A pooler's: another client's prepared statement, or none; an unknown start-up parameter.
            ("26000", Class::Unavailable),
            ("42P05", Class::Unavailable),
            ("08P01", Class::Unavailable),
            ("99999", Class::Unavailable),
        ] {
            assert_eq!(class(state), expected, "{state}");
        }
    }
}
