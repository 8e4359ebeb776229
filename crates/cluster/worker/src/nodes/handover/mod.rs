//! What a worker that is being drained gives to others: containers with their names, the root, and blocks.
//!
//! Owns: the rounds of giving up, the steps by which a container goes (the source's and the target's), and copies of blocks with others
//! before they go here, for as long as readers under way may look for them.
//!
//! Never does: give up what fits nowhere, which stays and is tried again, or have two workers change a container: it is the source's until
//! the commit, and the target's from then on.
//!
//! Start with [`drain()`]; then `containers` and `takeover`, the two sides.

mod containers;
mod drain;
mod evacuate;
mod takeover;

#[cfg(test)]
pub(super) use containers::Line;
pub(crate) use drain::drain;
