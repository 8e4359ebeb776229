//! From records to a base part and its first layers.

pub(crate) mod assemble;
pub(crate) mod builder;
mod dictionary;
pub(crate) mod distinct;
pub(crate) mod input;
pub(crate) mod rows;
pub(crate) mod sort;
