//! What is stored and what is asked: TPC-H lineitem, and operations drawn uniformly or by Zipf's law.

mod operations;
mod records;
mod zipf;

pub(crate) use operations::{Get, Search, Skew, gets, searches};
pub(crate) use records::{ATTRIBUTES, Records, SELECTIVE};
