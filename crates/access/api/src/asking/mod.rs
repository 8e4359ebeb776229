//! What requests have in common that take work: parameters, a timeout, how many of them there are at a time, the way to the cluster, and
//! answers of lines.

mod asked;
pub(crate) mod lines;
mod own;
mod places;

pub(crate) use asked::{Asked, PATH_PATTERN, TIMEOUT_MAX, TIMEOUT_PATTERN, Timeout, from_text};
pub(crate) use own::OwnCluster;
pub(crate) use places::{Place, Places, PlacesMax};
