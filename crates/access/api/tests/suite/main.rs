//! `/api/v1` over HTTP, of a coordinator and workers as they are.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod answers;
mod batch;
mod bed;
mod changes;
mod datasets;
mod description;
mod doors;
mod doubles;
mod https;
mod objects;
mod refusals;
mod rights;
mod schema;
mod traces;
