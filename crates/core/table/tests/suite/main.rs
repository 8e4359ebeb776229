//! The table format from outside: round trips, what a reader touches, rows in place, and input that is broken.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod blooms;
mod corrupt;
mod fuzz;
mod golden;
mod layouts;
mod nested;
mod pruning;
mod reading;
mod round_trip;
mod samples;
mod schemas;
mod selecting;
mod writing;
