//! Lines to the coordinator and to the workers, and one question over one of them.
//!
//! Owns: the connections, how each is made, shared and made again, the pins that are kept on those of this host, and what an
//! answer that is not there, late or unfit is called.
//!
//! Never does: choose whom to ask, which `route` does, or ask a second worker.
//!
//! Start with [`Connections::link`] and [`ask`].

mod ask;
mod connections;
mod control;
mod slot;
mod traced;
mod wait;

pub(crate) use ask::{Failure, Given, ask, ask_bytes, ask_for, deadline_for, given, misfit};
pub(crate) use connections::{Connections, Link};
pub(crate) use control::{Control, unexpected};
pub(crate) use slot::to_its_end;
pub(crate) use traced::{of_node, said};
pub use wait::Wait;
