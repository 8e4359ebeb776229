//! A run of the model: queries, loads, plans and polls in the order of time.

mod access;
mod engine;
mod events;
mod lead;
mod observer;
mod pick;

pub(crate) use engine::{Run, run};
pub use observer::{Fact, Observer, Unobserved};
