//! Which workers hold a segment, how many, and which of them a read goes to.
//!
//! Owns: the default assignment of routes to workers ([`rank`] and [`holder`]), and what differs from it by popularity:
//! how many replicas a segment has and where ([`plan`]), the steps that lead there ([`changes`], [`garbage`]), and which
//! replica a client asks ([`pick`]). Never does: membership, which is the coordinator's, I/O, clocks and randomness: time
//! and seeds are arguments.
//!
//! The assignment is rendezvous hashing (D. G. Thaler and C. V. Ravishankar, "Using name-based mappings to increase
//! hit rates", IEEE/ACM Transactions on Networking 6(1), 1998): every (route, worker) pair has a pseudo-random score
//! and the highest wins. All who know the same workers agree without talking to each other, a worker that leaves
//! gives up only its own segments, in equal parts to all others, and one that joins takes only what is now its own.
//!
//! Plans follow "Getafix: Workload-aware Distributed Interactive Analytics", and go past it where it is wrong or can be
//! bettered. Start with `README.md`, which has the goals and the phases, then [`Snapshot`] and [`plan()`].

#![warn(unreachable_pub)]

mod age;
mod datasets;
mod far;
mod far_time;
mod form;
mod form_disk;
mod learned;
mod packing;
mod plan;
mod popularity;
mod routing;
mod steps;

pub use age::period_end;
pub use datasets::{Datasets, Reading, folder};
pub use far::{FarColumn, FarPart, FarScan, far_share};
pub use far_time::{FAR_ASKED, FarReading, FarSelecting};
pub use form::{FormCandidate, FormCosts, FormRoom, form_misses, form_pays};
pub use form_disk::{FormDisk, FormDiskRoom};
pub use packing::Packing;
pub use plan::{
    Concurrency, Holdings, Piece, Plan, PlanSettings, Policy, Reason, SegmentDemand, Share, Snapshot, Unsatisfied, WorkerRoom,
    plan,
};
pub use popularity::{Heat, Popularity, Speeds, Usage, Weigh, Windows};
pub use routing::{
    Allowance, Asking, Candidate, ForOther, Meeting, OnTheWay, Pick, QueueView, Usual, asks_again, by_part, holder,
    largest_remainder, left_to_the_end, pick, rank, two_choices,
};
pub use steps::{Changes, Garbage, InFlight, Load, Replica, Storage, changes, collect, garbage};
