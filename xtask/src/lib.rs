//! What keeps the house as it is: `cargo xtask tidy`.
//!
//! Owns: the rules of the checkout that the compiler does not know (who may depend on whom, how long a file is, which modules
//! go round in circles, where clocks are read), and the ratchet of what does not meet them yet.
//! Never does: change a file but `xtask/ratchet.txt`, and that only when asked to.
//!
//! A rule finds places, each with a weight. Their sum for a crate may not be above the crate's number in the ratchet, which is
//! zero where it has none. So a rule holds for what is new from its first day, and what is old can only become better.
//! Numbers are kept by crate and not by file: files move, and branches that move them should merge.
//!
//! Start with [`tidy()`].

mod manifest;
mod ratchet;
mod rule;
mod rules;
mod source;
mod tidy;
mod tree;

pub use ratchet::RATCHET_PATH;
pub use rule::{Finding, Rule};
pub use tidy::{Outcome, tidy};
