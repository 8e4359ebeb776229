//! What requests have in common that take work: parameters, a timeout, and how many of them there are at a time.

mod asked;
mod places;

pub(crate) use asked::{Asked, TIMEOUT_PATTERN, Timeout, from_text};
pub(crate) use places::{Place, Places, PlacesMax};
