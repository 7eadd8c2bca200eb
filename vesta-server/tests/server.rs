//! A real server inside the test: what it answers, and what is around that.

#[path = "server/around.rs"]
mod around;
#[path = "server/methods.rs"]
mod methods;
#[path = "server/segments.rs"]
mod segments;
#[path = "server/support.rs"]
mod support;
