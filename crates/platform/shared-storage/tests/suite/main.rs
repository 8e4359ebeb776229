//! What every kind of shared storage must do, and what each does of its own.
#![allow(clippy::unwrap_used, reason = "a test that can't go on ends there")]

mod bandwidth;
mod conformance;
mod faults;
mod files;
mod lab;
mod objects;
mod s3;
mod second_server;
