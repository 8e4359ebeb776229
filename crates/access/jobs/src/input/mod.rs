//! What tasks read, and the tiers of the workers that it is read from.
//!
//! Owns: who has it already (`found`), having it brought (`carrier`), what leaves and comes (`departures`). Never does: decide what is
//! brought when. Start with [`Carrier`].

mod carrier;
mod departures;
mod found;

pub use carrier::Carrier;
pub use departures::follow;
pub use found::{Versions, blocks, found};
