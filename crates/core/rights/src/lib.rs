//! Who may do what, where: one decision for every way in.
//!
//! Owns: [`Who`] a caller is, what each request of each protocol needs ([`Need`]), and whether the one has the other
//! ([`decide`]). A request without a need does not compile: the matches are exhaustive. Never does: prove who somebody is
//! (`platform/transport` does), keep tokens (`platform/metadata`), look at the clock: the time is an argument.
//!
//! Start with [`Caller::may`] and [`needs`].

#![warn(unreachable_pub)]

mod caller;
mod cut;
mod decide;
pub mod needs;
mod who;

pub use caller::Caller;
pub use cut::{cut, cut_status};
pub use decide::{Action, Need, Place, decide, grants};
pub use who::Who;
