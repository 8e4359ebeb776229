//! The gateway over a whole small cluster in process, asked by raw requests and by the clients that people use.

mod client;
mod clients;
mod cluster;
mod conformance;
mod forged;
mod fuzz;
mod local;
mod reads;
mod store;
mod strangers;
mod writes;
