//! One memory and what is asked of it: reads of shared storage, scans of columns, calls of shards and shuffles at once, and the mix of them
//! swapped on the way. `forebay_navigation::weigh` as it is has the memory, beside splits that are fixed.
//!
//! Owns: a model of what each owner's bytes save, and how that is measured there. Never does: a decision. Start with [`budget`].

mod cache;
mod figures;
mod layers;
mod mix;
mod run;
#[cfg(test)]
mod tests;

pub use figures::{BudgetFigures, budget};
