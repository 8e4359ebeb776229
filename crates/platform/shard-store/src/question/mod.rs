//! What people and programs ask for: conditions as text, operations as JSON.

mod condition;
mod limits;
mod parse;
mod query;

pub use condition::{Condition, Test};
