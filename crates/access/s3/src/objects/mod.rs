//! Objects: reads from the tiers, copies, and writes to what does not speak S3.

mod copy;
mod get;
mod local;
mod parts;
pub(crate) mod uploads;

pub(crate) use copy::copy;
pub(crate) use get::get;
pub(crate) use local::{NULL_VERSION, delete, delete_local, delete_not_checked, put_local};
