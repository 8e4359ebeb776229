//! The gateway over a whole small cluster in process, asked by raw requests and by the clients that people use.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]
#![allow(clippy::disallowed_methods, reason = "tests mount what the gateway is over")]

mod buckets;
mod client;
mod clients;
mod cluster;
mod conformance;
mod files;
mod fuzz;
mod https;
mod listings;
mod object_store;
mod parts;
mod reads;
mod rights;
mod store;
mod strangers;
mod temporary;
mod warm;
mod writes;
