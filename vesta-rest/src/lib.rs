//! Vesta over HTTP: the four endpoints of the Java Vesta, a JSON API, and their documentation.
//!
//! [`app`] has the endpoint table, `handlers` the endpoints, [`problem`] every error, and
//! [`serve`](serve()) the server with its limits. Configuration, the generator itself, metrics
//! and shutdown belong to vesta-boot.
//!
//! ```
//! // Every endpoint is in one table; the OpenAPI document and the metrics follow it.
//! assert!(vesta_rest::app::ENDPOINTS.iter().any(|endpoint| endpoint.path == "/genid"));
//! ```
#![forbid(unsafe_code)]

use vesta_boot::{Api, Front};

pub mod app;
mod cors;
mod described;
pub mod dto;
mod endpoint;
mod endpoints;
mod fast_path;
mod handlers;
mod openapi;
mod params;
pub mod problem;
mod responses;
mod serve;
mod state;
mod values;
mod waiting;

pub use app::METHODS;
pub use serve::{Limits, serve, serve_with};

/// This server as a front of a program.
pub const FRONT: Front = Front {
    api: Api::Rest,
    methods: METHODS,
    serve,
    wait: waiting::wait,
};
