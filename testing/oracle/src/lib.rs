//! What clients are told while things go wrong, and what must hold of it, whoever makes them go wrong.
//!
//! Owns: bytes that say what they are of ([`contents`]), a history of calls and answers ([`history`]), clients that use temporary
//! nodes together ([`load`]), and what must hold of a history ([`judge`], [`records`], [`recovery`]).
//!
//! Never does: start or stop anything, or know what was done to whom: of that it is told when a worker may have been lost.

pub mod contents;
pub mod history;
mod judge;
pub mod load;

pub use judge::{
    Losses, Promise, RecordCall, RecordOp, Recovery, Rule, Views, Violation, errors, is_certain, judge, records, recovery,
};
