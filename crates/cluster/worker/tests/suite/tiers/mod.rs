//! What lies in which tier, and what leaves it.

mod disks;
mod evict;
