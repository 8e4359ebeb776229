//! The rules over small made-up checkouts, and what pages say of the checkout itself.

mod circles;
mod floors;
mod messages;
mod ratchet;
mod rules;
mod supply;
mod tree;
