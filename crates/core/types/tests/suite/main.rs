//! The vocabulary: what is read is what was written, and sets and ranges agree with counting one by one.

mod names;
mod pages;
mod segments;
mod units;
