//! A ring: memory that a server shares with a client of the same user beside their Unix socket, for calls that are small.
//!
//! It carries a call only as long as that is a matter of microseconds. The client puts a request into the next slot
//! (`slots`), spins for a moment or gives other calls of its thread their turn (`asking`, `pace`), and takes the answer; the
//! server's one thread for all rings (`polling`) polls them while calls come one shortly after the other, and sleeps otherwise.
//! Whatever doesn't go so goes by the socket: a request while the thread sleeps or the ring is full, an answer that is long or
//! takes long. So nothing depends on the other side's doing something in the ring, and nobody waits in it.
//!
//! Neither side trusts what it finds: a message is copied out before it is looked at, lengths are checked, and who writes
//! nonsense has written it into memory that only its own calls use.

mod asking;
mod lengths;
#[cfg_attr(feature = "models", path = "model_memory.rs")]
mod memory;
#[cfg(test)]
#[cfg(feature = "models")]
mod models;
mod pace;
mod polling;
mod slots;
mod words;

pub(crate) use asking::{Asked, Ring};
pub(crate) use polling::{Answers, Rings, Seat};
pub(crate) use slots::{MESSAGE_BYTES_MAX, Request, Slots};
