//! The vocabulary: what is read is what was written, and sets and ranges agree with counting one by one.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod checksums;
mod names;
mod pages;
mod segments;
mod units;
