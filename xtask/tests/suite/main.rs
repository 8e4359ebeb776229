//! The rules over small made-up checkouts.

mod circles;
mod floors;
mod messages;
mod ratchet;
mod rules;
mod tree;
