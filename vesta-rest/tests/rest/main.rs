//! vesta-rest from outside: the handlers over a scripted clock, and the real program over sockets.

mod bounds;
mod clients;
mod cors;
mod deployment;
mod formats;
mod fuzz;
mod guide;
mod layouts;
mod leaf;
mod limits;
mod once;
mod openapi;
mod pages;
mod problems;
mod program;
mod proxies;
mod rust_version;
mod segments;
mod serials;
mod support;
mod tls;
mod tokens;
mod v1;
mod vesta;
