//! Servers that others wrote, as tests start them.
//!
//! Owns: [`SecondServer`], an S3 server for what it and the one of `forebay-demo` must both say the same of, and [`Postgres`], a database
//! server. Never does: what the binary has; nothing that is released depends on this.

mod postgres;
mod second_server;

pub use postgres::{POSTGRES_PASSWORD, Postgres};
pub use second_server::SecondServer;
