//! Shared parts of both servers: settings, TLS, tokens, workers.

mod config;
mod security;
mod tls;
mod workers;
