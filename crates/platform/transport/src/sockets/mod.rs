//! Addresses, and the sockets behind them.

pub(crate) mod address;
pub(crate) mod socket;
pub(crate) mod unix_file;
