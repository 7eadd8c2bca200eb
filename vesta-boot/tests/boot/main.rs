//! What both servers share: settings, TLS, tokens, workers.

mod config;
mod security;
mod tls;
mod workers;
