//! A real server inside the test: methods, health, limits, TLS and tokens.

mod bounds;
mod connections;
mod forged;
mod health_and_limits;
mod methods;
mod pool_server;
mod pool_server_two;
mod segments;
mod serials;
mod support;
mod tls;
mod tokens;
mod trailers_only;
