//! vesta-rest from outside: the handlers over a scripted clock, and the real program over sockets.

mod guide;
mod leaf;
mod limits;
mod openapi;
mod pages;
mod problems;
mod program;
mod support;
mod v1;
mod vesta;
