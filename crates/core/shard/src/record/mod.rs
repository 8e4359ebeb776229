//! One record on its way out, and the two layers that hold whole records: compressed blocks and plain text.

pub(crate) mod blocks;
pub(crate) mod body;
pub(crate) mod codes;
pub(crate) mod output;
pub(crate) mod plain;
pub(crate) mod varint;
