//! vesta-rest from outside: the handlers over a scripted clock, and the real program over sockets.

mod bounds;
#[allow(dead_code, reason = "vesta-boot's tests use the rest")]
#[path = "../../../vesta-boot/tests/common/certificates.rs"]
mod certificates;
mod clients;
mod formats;
mod fuzz;
mod guide;
mod layouts;
mod leaf;
mod limits;
mod openapi;
mod pages;
mod problems;
mod program;
mod readme;
mod rust_version;
mod segments;
mod support;
mod tls;
mod tokens;
mod v1;
mod vesta;
