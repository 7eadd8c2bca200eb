//! Vesta's gRPC server.
//!
//! The program is `vesta_boot::main` around [`serve`]. Tests call [`serve`] on their own thread
//! with a listener on `127.0.0.1:0` and a service whose clock they control.
#![forbid(unsafe_code)]

use vesta_boot::{Api, Front};

mod access;
mod deadline;
#[cfg(test)]
mod fuzz;
mod grpc;
mod health;
mod in_flight;
mod methods;
mod pool_server;
mod routes;
mod segments;
mod serials;
mod serve;
mod waiting;

pub use methods::METHODS;
pub use serve::{Timeouts, serve, serve_with};

/// This server as a front of a program.
pub const FRONT: Front = Front {
    api: Api::Grpc,
    methods: METHODS,
    serve,
    wait: waiting::wait,
};
