//! What the oracle finds, in histories that were made for it.

mod contents;
mod epochs;
mod nodes;
mod objects;
mod records;
mod recovery;
mod written;
