//! What a statement reads and writes, as its objects change.

mod snapshots;
mod temporary;
mod written;
