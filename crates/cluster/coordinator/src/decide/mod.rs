//! What the coordinator decides, without I/O and clocks.

mod budget;
mod catalogue;
mod drain;
mod event;
mod hearing;
mod ledger;
mod lookup;
mod members;
mod parts;
mod placement;
mod shares;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod tokens;
mod validate;
mod whole;

pub(crate) use event::{Catalogue, Change, Command, Event, Stored};
pub(crate) use placement::{Checkpoint, Outcome, Problem};
pub(crate) use state::{Start, State};
#[cfg(test)]
pub(crate) use whole::fail_at;
