//! Layers come and go: by the size that is set, by what questions filled, and by name.

mod asked;
mod change;
mod fill;
mod tune;

pub use fill::Sealer;

pub(super) use asked::{Asked, asked_before, begin_with, steering};
pub(super) use change::LayerChange;
