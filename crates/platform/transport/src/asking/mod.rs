//! The asking side: dialling, calls that wait for their replies, and the connection that callers have.

pub(crate) mod calls;
pub(crate) mod connection;
pub(crate) mod dial;
pub(crate) mod framed;
pub(crate) mod speed;
