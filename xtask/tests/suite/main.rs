//! The rules over small made-up checkouts.

mod circles;
mod ratchet;
mod rules;
mod tree;
