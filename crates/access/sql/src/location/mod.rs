//! Where a path of a statement leads: names of mounts, stores and files of this machine, as places of one store.

mod names;
mod parse;
mod pattern;
mod place;

pub(crate) use names::{Namespace, SCHEME, is_temporary, shown, store_name};
pub(crate) use parse::Location;
pub(crate) use place::{Place, scheme_of};
