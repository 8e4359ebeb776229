//! Arrow Flight SQL on the embedded engine, so that ADBC and JDBC clients connect without a cluster of engines.
//!
//! Owns: the port, who may use it, statements and prepared statements between two calls, and what clients ask about the
//! server and its tables. Never does: plan or run SQL itself (`forebay-sql` does), or keep rows.
//!
//! Start with [`FlightServer::start`]; what its calls mean stands in `service`.

mod answers;
mod auth;
mod callers;
mod door;
mod incoming;
mod metadata;
mod parameters;
mod server;
mod service;
mod shelf;
mod status;

pub use callers::Connect;
pub use server::{FlightServer, FlightSettings};
