//! The temporary namespace: typed nodes for data that lives between two steps of a job (NodeKernel, ATC'19).
//!
//! Owns: the semantics of files, key-values, tables, directories and bags; names and their order; values small enough to lie
//! with their metadata; which blocks a node has, leases, and one worker's part of the namespace ([`Namespace`]); what makes a call take
//! effect once ([`Once`]).
//! Never does: move bytes of blocks, look at a clock, or talk to other workers. What is elsewhere is named ([`At::Elsewhere`])
//! and left to the caller. The semantics are specified in `docs/specs/nodes.md`.
//!
//! The floors, from the ground up; each knows only those below it:
//! - `terms`: names, identities, types, places, errors; on them alone stands `spread`, which worker gets a block or a container;
//! - `once`, on nothing else: numbers of calls, and which of them were done;
//! - `node`: what one node is and has;
//! - `namespace`: the part of one worker, its containers and their nodes, found and placed; in it `operations`, what is asked of a node by
//!   its name, and on these `moves`, what goes from one worker to another.
//!
//! ```
//! use forebay_nodes::{Got, Namespace, ROOT};
//!
//! let mut names = Namespace::new(1, 1 << 20);
//! names.make_root();
//! names.put(ROOT, "greeting", b"hello".to_vec().into()).unwrap();
//! assert!(matches!(names.get(ROOT, "greeting").unwrap(), Got::Inline(b"hello")));
//! ```

#![warn(unreachable_pub)]

mod namespace;
mod node;
mod once;
mod spread;
mod terms;

pub use namespace::{At, Carton, Condition, CreateOptions, Entry, Namespace, Packed, Removed, Target, Usage, WayUp};
pub use node::{Appended, FileView, Got, INLINE_BYTES_MAX, Moving, Stat, TAIL_BYTES_MAX, Value, ValueView, tag};
pub use once::{CallNumber, Once, Settled, Slots};
pub use spread::{Candidate, Full, Haven, Moves, offer, plan_blocks, plan_containers};
pub use terms::{
    Affinity, BlockRef, DirId, LOCATION_BYTES_MAX, Location, NAME_BYTES_MAX, NodeError, NodeErrorKind, NodeResult, NodeType,
    PATH_BYTES_MAX, ROOT, StorageClass, UNCLAIMED_FOR, check_name, is_inside, split,
};
