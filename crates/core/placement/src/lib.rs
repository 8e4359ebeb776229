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
//! bettered. Start with [`Snapshot`] and [`plan()`].

#![warn(unreachable_pub)]

mod baseline;
mod bound;
mod budget;
mod capacity;
mod changes;
mod copies;
mod crowded;
mod dice;
mod fit;
mod forest;
mod form;
mod garbage;
mod matching;
mod neighbours;
mod packing;
mod pick;
mod plan;
mod planner;
mod popularity;
mod queues;
mod rendezvous;
mod repack;
mod routing;
mod settings;
mod snapshot;
mod sticky;

pub use changes::{Changes, InFlight, Load, changes};
pub use form::{FormCandidate, FormCosts, FormRoom, form_pays};
pub use garbage::{Garbage, Replica, Storage, collect, garbage};
pub use packing::Piece;
pub use pick::{Candidate, Pick, pick, two_choices};
pub use plan::{Plan, Reason, Share, Unsatisfied};
pub use planner::plan;
pub use popularity::{Popularity, Usage, Windows, measured_speed};
pub use queues::QueueView;
pub use rendezvous::{holder, rank};
pub use routing::largest_remainder;
pub use settings::{Concurrency, PlanSettings, Policy};
pub use snapshot::{Holdings, SegmentDemand, Snapshot, WorkerRoom};
