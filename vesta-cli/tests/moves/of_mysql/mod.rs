//! Tables of MySQL and MariaDB.

mod databases;
mod java;
mod machine_ids;
mod tinyid;
mod together;
