//! What a worker that is being drained gives to others: containers with their names, the root, and blocks.

mod containers;
mod drain;
mod evacuate;
mod takeover;

#[cfg(test)]
pub(super) use containers::Line;
pub(crate) use drain::drain;
