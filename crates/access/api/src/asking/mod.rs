//! What requests have in common that take work: parameters, a timeout, how many of them there are at a time, and answers
//! of lines.

mod asked;
pub(crate) mod lines;
mod places;

pub(crate) use asked::{Asked, TIMEOUT_PATTERN, Timeout, from_text};
pub(crate) use places::{Place, Places, PlacesMax};
