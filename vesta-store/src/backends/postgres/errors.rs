//! Error codes of PostgreSQL.

use crate::backends::sql::Class;

pub(super) fn class(state: &str) -> Class {
    match state {
        // Not serializable; deadlock; lock wait timeout; table being changed.
        "40001" | "40P01" | "55P03" | "55006" => Class::Contended,
        // Row; table; type of a table.
        "23505" | "42P07" | "42710" => Class::Exists,
        "25006" => Class::ReadOnly,
        // Password; database.
        "28P01" | "3D000" => Class::Denied,
        // User without login; missing privilege; missing schema, table or function; feature not
        // supported by a managed database.
        "28000" | "42501" | "3F000" | "42P01" | "42883" | "0A000" => Class::Refused,
        // Syntax; damaged index or page.
        "42601" | "XX001" | "XX002" => Class::Unfit,
        // Includes errors of poolers and of future servers: they may be transient.
        _ => Class::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wrong_settings_or_damage_fail_a_start() {
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
            // From a pooler: another client's prepared statement, or none; an unknown start-up
            // parameter.
            ("26000", Class::Unavailable),
            ("42P05", Class::Unavailable),
            ("08P01", Class::Unavailable),
            ("99999", Class::Unavailable),
        ] {
            assert_eq!(class(state), expected, "{state}");
        }
    }
}
