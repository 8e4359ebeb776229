//! The temporary namespace: typed nodes for data that lives between two steps of a job (NodeKernel, ATC'19).
//!
//! Owns: the semantics of files, key-values, tables, directories and bags; names and their order; values small enough to lie
//! with their metadata; which blocks a node has, leases, and one worker's part of the namespace ([`Namespace`]).
//! Never does: move bytes of blocks, look at a clock, or talk to other workers. What is elsewhere is named ([`At::Elsewhere`])
//! and left to the caller. The semantics are specified in `docs/specs/nodes.md`.
//!
//! ```
//! use std::time::Duration;
//! use forebay_nodes::{Got, Namespace, ROOT};
//!
//! let mut names = Namespace::new(1, 1 << 20);
//! names.make_root();
//! names.put(ROOT, "greeting", b"hello".to_vec().into()).unwrap();
//! assert!(matches!(names.get(ROOT, "greeting").unwrap(), Got::Inline(b"hello")));
//! # let _ = Duration::ZERO;
//! ```

#![warn(unreachable_pub)]

mod create;
mod delete;
mod drain;
mod error;
mod evacuate;
mod file;
mod handover;
mod id;
mod kind;
mod labels;
mod lease;
mod list;
mod location;
mod namespace;
mod node;
mod offer;
mod path;
mod rename;
mod replace;
mod table;
mod takeover;
mod value;
mod walk;

pub use create::CreateOptions;
pub use delete::Removed;
pub use drain::{Haven, Moves, plan_blocks, plan_containers};
pub use error::{NodeError, NodeErrorKind, NodeResult};
pub use file::{Appended, FileView, TAIL_BYTES_MAX};
pub use handover::{Carton, Packed};
pub use id::{BlockRef, DirId, ROOT, UNCLAIMED_FOR};
pub use kind::{Affinity, NodeType, StorageClass};
pub use list::Entry;
pub use location::{LOCATION_BYTES_MAX, Location};
pub use namespace::Namespace;
pub use node::Stat;
pub use offer::{Candidate, Full, offer};
pub use path::{NAME_BYTES_MAX, PATH_BYTES_MAX, check_name, is_inside, split};
pub use rename::{Moving, Target};
pub use replace::{Condition, tag};
pub use value::{Got, INLINE_BYTES_MAX, Value, ValueView};
pub use walk::At;
