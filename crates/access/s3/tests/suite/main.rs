//! The gateway over a whole small cluster in process, asked by raw requests and by the clients that people use.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]
#![allow(clippy::disallowed_methods, reason = "tests mount what the gateway is over")]

mod audit;
mod buckets;
mod files;
mod fuzz;
mod https;
mod listings;
mod parts;
mod peers;
mod reads;
mod rig;
mod rights;
mod strangers;
mod temporary;
mod traces;
mod warm;
mod writes;
