//! What tasks read, and the tiers of the workers that it is read from.
//!
//! Owns: who has it already (`ranges`), having it brought (`carrier`), what leaves and comes (`departures`). Never does: decide what is
//! brought when. Start with [`Carrier`].

mod carrier;
mod departures;
mod ranges;

pub use carrier::Carrier;
pub use departures::follow;
pub use ranges::{Versions, blocks, found};
