//! Leaves out row groups of a table file: by their cells' bounds, which the metadata has, and by bloom filters, which are read.

mod blooms;
mod bounds;

pub(super) use blooms::{Keys, keys, may_have};
pub(super) use bounds::may_meet;
