//! Functions of the engine that answered wrongly, by their own names, each with what it is mended by.
//!
//! Owns: `min` and `max` of groups of floats, `lag` and `lead` that ignore nulls.
//! Never does: add functions that the engine doesn't have.
//!
//! Start with [`mend`].

mod least_and_most;
mod shifted;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;

/// Puts them in the place of the engine's, where queries are planned and wherever a part of one is read that was sent.
pub fn mend(functions: &mut dyn FunctionRegistry) -> Result<()> {
    for function in least_and_most::functions() {
        functions.register_udaf(Arc::new(function))?;
    }
    for function in shifted::functions() {
        functions.register_udwf(function)?;
    }
    Ok(())
}
