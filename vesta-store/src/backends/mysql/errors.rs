//! The error numbers of MySQL and MariaDB.

use crate::backends::sql::Class;

pub(super) fn class(number: u16, state: &str) -> Class {
    match number {
        // A deadlock; a lock wait that took too long; a change since it was read; a conflict in a
        // cluster; another definition of the table.
        1213 | 1205 | 1020 | 3101 | 1412 | 1615 => Class::Contended,
        1050 | 1062 => Class::Exists,
        // Set on the server; on a transaction; in a mode; InnoDB.
        1290 | 1792 | 1836 | 1874 => Class::ReadOnly,
        // The user; the database; a host; a table, a column; not the privilege; an account that is
        // locked, or whose password has to be changed.
        1044 | 1045 | 1049 | 1130 | 1142 | 1143 | 1227 | 1251 | 1370 | 1396 | 1410 | 1524
        | 1698 | 1820 | 1862 | 3118 | 4151 => Class::Denied,
        // Too many connections, of the user, or transactions; too little memory, or disk.
        1040 | 1203 | 1226 | 1637 | 1037 | 1038 | 1041 | 1021 | 1114 | 1030 => Class::Unavailable,
        // Shutting down, or starting; the connection or the statement was ended; the host is blocked
        // after errors; not at the server's turn in a cluster; too late.
        1053 | 1077 | 1079 | 1080 | 1152 | 1158 | 1159 | 1160 | 1161 | 1184 | 1927 | 1317
        | 1129 | 1180 | 1047 | 3024 | 1969 | 3032 | 3168 | 3100 => Class::Unavailable,
        _ if state == "40001" => Class::Contended,
        _ if state.starts_with("08") || state == "70100" => Class::Unavailable,
        _ => Class::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_told_from_what_needs_a_person() {
        for (number, state, expected) in [
            (1213, "40001", Class::Contended),
            (1205, "HY000", Class::Contended),
            (1062, "23000", Class::Exists),
            (1290, "HY000", Class::ReadOnly),
            (1045, "28000", Class::Denied),
            (1040, "08004", Class::Unavailable),
            (1053, "08S01", Class::Unavailable),
            (1146, "42S02", Class::Refused),
            (1406, "22001", Class::Refused),
            (65000, "08S01", Class::Unavailable),
        ] {
            assert_eq!(class(number, state), expected, "{number}");
        }
    }
}
