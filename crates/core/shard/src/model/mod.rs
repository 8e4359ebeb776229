//! What a shard holds: keys, typed values, and how both are written so that the order of bytes is their order.

pub(crate) mod alphabet;
pub(crate) mod key;
pub(crate) mod schema;
pub(crate) mod value;
