//! A real server inside the test: its methods, health, limits, TLS and tokens.

#[path = "server/bounds.rs"]
mod bounds;
#[path = "server/connections.rs"]
mod connections;
#[path = "server/health_and_limits.rs"]
mod health_and_limits;
#[path = "server/methods.rs"]
mod methods;
#[path = "server/segments.rs"]
mod segments;
#[path = "server/serials.rs"]
mod serials;
#[path = "server/support.rs"]
mod support;
#[path = "server/tls.rs"]
mod tls;
#[path = "server/tokens.rs"]
mod tokens;
#[path = "server/trailers_only.rs"]
mod trailers_only;
