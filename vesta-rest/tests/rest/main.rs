//! vesta-rest from outside: the handlers over a scripted clock, and the real program over sockets.

mod bounds;
mod formats;
mod guide;
mod layouts;
mod leaf;
mod limits;
mod openapi;
mod pages;
mod problems;
mod program;
mod segments;
mod support;
mod v1;
mod vesta;
