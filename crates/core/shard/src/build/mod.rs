//! From records to a base part and its first layers.

pub(crate) mod assemble;
pub(crate) mod builder;
pub(crate) mod distinct;
pub(crate) mod rows;
pub(crate) mod sort;
