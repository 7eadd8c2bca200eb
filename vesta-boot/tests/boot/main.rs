//! What both servers share: settings, the admin listener, TLS, tokens, workers.

mod admin;
mod config;
mod security;
mod tls;
mod workers;
