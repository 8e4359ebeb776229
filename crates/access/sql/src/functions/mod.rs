//! Functions of the engine that answered wrongly, or that took memory without a bound, by their own names, each with what it is mended by.
//!
//! Owns: `min` and `max` of groups of floats, `lag` and `lead` that ignore nulls, structs that `case` and `nullif` leave out, decimals that are
//! cast to fewer digits, the bound of functions that make much of little, lambdas among them, and what counts texts and lists that windows give.
//! Never does: add functions that the engine doesn't have.
//!
//! Start with [`mend`].

mod absent;
mod bounded;
mod filtered;
mod given;
mod least_and_most;
mod narrowed;
mod shifted;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;

pub use bounded::CallMemory;
pub(crate) use bounded::{LateConstants, bytes_of, elements_within, folding, is_of_one_width, widest};
pub(crate) use given::{Counts, counting, kept};

/// Puts them in the place of the engine's, where queries are planned and wherever a part of one is read that was sent. What functions of a row
/// make is bounded by `memory`.
pub fn mend(functions: &mut dyn FunctionRegistry, memory: &CallMemory) -> Result<()> {
    for function in least_and_most::functions() {
        functions.register_udaf(Arc::new(function))?;
    }
    for function in shifted::functions() {
        functions.register_udwf(function)?;
    }
    given::register(functions)?;
    functions.register_function_rewrite(Arc::new(filtered::Filtered))?;
    functions.register_function_rewrite(Arc::new(absent::Absent))?;
    functions.register_function_rewrite(Arc::new(narrowed::Narrowed))?;
    bounded::register(functions, memory)
}
