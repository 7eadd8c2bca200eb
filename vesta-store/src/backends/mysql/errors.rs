//! Error numbers of MySQL and MariaDB.

use crate::backends::sql::Class;

pub(super) fn class(number: u16, state: &str) -> Class {
    match number {
        // Deadlock; lock wait timeout; row changed since it was read; conflict in a cluster; table
        // definition changed.
        1213 | 1205 | 1020 | 3101 | 1412 | 1615 => Class::Contended,
        1050 | 1062 => Class::Exists,
        // Set on the server; on a transaction; by a mode; by InnoDB.
        1290 | 1792 | 1836 | 1874 => Class::ReadOnly,
        // User or password; database; host; authentication method.
        1045 | 1049 | 1130 | 1251 | 1524 | 1698 => Class::Denied,
        // Missing privilege: on the database, a table, a column, of an administrator, on a routine;
        // missing table; account locked or password expired.
        1044 | 1142 | 1143 | 1227 | 1370 | 1146 | 3118 | 4151 | 1820 | 1862 => Class::Refused,
        // Syntax; damaged table or index.
        1064 | 1034 | 1035 | 1712 => Class::Unfit,
        _ if state == "40001" => Class::Contended,
        // Includes errors of proxies and of future servers: they may be transient.
        _ => Class::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wrong_settings_or_damage_fail_a_start() {
        for (number, state, expected) in [
            (1213, "40001", Class::Contended),
            (1205, "HY000", Class::Contended),
            (1062, "23000", Class::Exists),
            (1290, "HY000", Class::ReadOnly),
            (1045, "28000", Class::Denied),
            (1040, "08004", Class::Unavailable),
            (1053, "08S01", Class::Unavailable),
            (1049, "42000", Class::Denied),
            (1044, "42000", Class::Refused),
            (1142, "42000", Class::Refused),
            (1146, "42S02", Class::Refused),
            (4151, "HY000", Class::Refused),
            (1064, "42000", Class::Unfit),
            // From a proxy: no server behind it, too many connections, a server that went away.
            (9001, "HY000", Class::Unavailable),
            (9002, "HY000", Class::Unavailable),
            (9501, "HY000", Class::Unavailable),
            (1105, "HY000", Class::Unavailable),
            // Idle for too long; too many prepared statements.
            (4031, "HY000", Class::Unavailable),
            (1461, "42000", Class::Unavailable),
            (65000, "08S01", Class::Unavailable),
        ] {
            assert_eq!(class(number, state), expected, "{number}");
        }
    }
}
