//! What tasks read, and the tiers of the workers that it is read from: `found` out, brought by the `carrier`, and `departures` from them.

mod carrier;
mod departures;
mod found;

pub(super) use carrier::Carrier;
pub(super) use departures::follow;
pub(super) use found::of_stage;
