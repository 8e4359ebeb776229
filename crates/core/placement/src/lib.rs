//! Which workers hold a segment.
//!
//! Owns: the assignment of routes to workers, behind [`rank`] and [`holder`]; everything that routes asks one of the
//! two. Never does: membership, which is the coordinator's, and I/O.
//!
//! The assignment is rendezvous hashing (D. G. Thaler and C. V. Ravishankar, "Using name-based mappings to increase
//! hit rates", IEEE/ACM Transactions on Networking 6(1), 1998): every (route, worker) pair has a pseudo-random score
//! and the highest wins. All who know the same workers agree without talking to each other, a worker that leaves
//! gives up only its own segments, in equal parts to all others, and one that joins takes only what is now its own.

mod rendezvous;

pub use rendezvous::{holder, rank};
