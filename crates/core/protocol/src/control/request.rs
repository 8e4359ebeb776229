//! What is asked of the coordinator, by who may ask it.

use forebay_types::{ForebayPath, Grant, MountId, MountName, MountOptions, TokenKeys, WorkerId};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::{Heartbeat, TableDefinition, WorkerInfo};

/// What comes to the coordinator, by who may say it. Every reply is a [`crate::ControlReply`] of the variant named at the
/// request, or [`crate::ControlReply::Failed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "one message at a time, taken apart as soon as it is read")]
pub enum ControlCall {
    /// By a client.
    Ask(ControlRequest),
    /// By an administrator.
    Administer(AdminRequest),
    /// By a process of the cluster.
    Serve(MemberRequest),
}

impl From<ControlRequest> for ControlCall {
    fn from(request: ControlRequest) -> Self {
        Self::Ask(request)
    }
}

impl From<AdminRequest> for ControlCall {
    fn from(request: AdminRequest) -> Self {
        Self::Administer(request)
    }
}

impl From<MemberRequest> for ControlCall {
    fn from(request: MemberRequest) -> Self {
        Self::Serve(request)
    }
}

impl ControlCall {
    /// The request's name, as metrics and the audit log have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ask(request) => request.into(),
            Self::Administer(request) => request.into(),
            Self::Serve(request) => request.into(),
        }
    }

    /// The same as it is said to who speaks a version: before 9 what is brought ahead and background work counted as demand.
    pub fn for_version(mut self, version: u16) -> Self {
        if let Self::Serve(MemberRequest::Heartbeat(beat)) = &mut self
            && version < 9
        {
            let ahead = std::mem::take(&mut beat.ahead).into_iter().map(|plan| (plan.mount, plan.bytes_per_sec));
            for (mount, rate) in std::mem::take(&mut beat.background).into_iter().chain(ahead) {
                match beat.demand.iter_mut().find(|(known, _)| *known == mount) {
                    Some((_, demand)) => *demand = demand.saturating_add(rate),
                    None => beat.demand.push((mount, rate)),
                }
            }
        }
        self
    }
}

/// What a client asks the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ControlRequest {
    /// The cluster as clients need it: [`crate::ControlReply::View`], or [`crate::ControlReply::Unchanged`] when `have` is
    /// current. Holds the mounts that the caller may read.
    View {
        /// Version of the view that the client has; 0 for none.
        have: u64,
    },
    /// Keeps an external table's definition: [`crate::ControlReply::Done`]. `Conflict` when the name is taken and `replace` is
    /// off.
    TableAdd {
        /// The definition.
        table: TableDefinition,
        /// Over one of the same name.
        replace: bool,
    },
    /// Forgets an external table: [`crate::ControlReply::Done`]. `NotFound` when there is none.
    TableRemove {
        /// Its name.
        name: String,
    },
    /// All external tables: [`crate::ControlReply::Tables`]. None for who may read some mounts only.
    Tables,
    /// A share of a mount's bandwidth bound for a client that must read shared storage itself:
    /// [`crate::ControlReply::Budget`].
    Budget {
        /// The client, by a random number.
        client: u64,
        /// The mount.
        mount: MountId,
    },
    /// Everything a person wants to know: [`crate::ControlReply::Status`].
    Status,
    /// What is new in the routing table: [`crate::ControlReply::Routes`].
    Routes {
        /// Version of the table that the asker has; 0 for none.
        have: u64,
    },
    /// Popularity, replicas and routing of the most popular segments: [`crate::ControlReply::Placement`].
    Placement {
        /// Segments at most; 1 to 10,000.
        limit: u32,
    },
    /// Where the scheduler of distributed SQL is: [`crate::ControlReply::Scheduler`].
    Scheduler,
    /// Who the caller is here: [`crate::ControlReply::Caller`].
    WhoAmI,
    /// A worker could not be told of a change: [`crate::ControlReply::Done`] once it can't serve what it knew before this was
    /// asked first, else [`crate::ControlReply::Unheard`], to ask again with its number.
    Unheard {
        /// The mount in which something has changed.
        mount: MountId,
        /// The worker that was not told.
        worker: WorkerId,
        /// The number of the answer before; none at first.
        number: Option<u64>,
    },
}

/// What an administrator asks the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum AdminRequest {
    /// Adds a mount after asking its storage: [`crate::ControlReply::Mount`].
    MountAdd {
        /// Its name.
        name: MountName,
        /// Its URL.
        url: String,
        /// Its options.
        #[serde(with = "super::mounts::Options")]
        options: MountOptions,
    },
    /// Changes a mount's options, from now on: [`crate::ControlReply::Mount`].
    MountSet {
        /// Its name.
        name: MountName,
        /// All options, changed ones among them.
        #[serde(with = "super::mounts::Options")]
        options: MountOptions,
    },
    /// Removes a mount; shared storage keeps its data: [`crate::ControlReply::Done`].
    MountRemove {
        /// Its name.
        name: MountName,
    },
    /// Keeps everything below a path in the tiers, from now on: [`crate::ControlReply::Done`].
    PinAdd {
        /// A path; all keys that start with it.
        path: ForebayPath,
    },
    /// Lifts a pin: [`crate::ControlReply::Done`]. `NotFound` when there is none at exactly this path.
    PinRemove {
        /// The pin's path.
        path: ForebayPath,
    },
    /// A worker gives up all temporary data and is given no more, or takes part again: [`crate::ControlReply::Done`].
    /// `NotFound` when it is not live.
    Drain {
        /// The worker.
        worker: WorkerId,
        /// From now on; else not any more.
        draining: bool,
    },
    /// Keeps a token, whose secret only its maker knows: [`crate::ControlReply::Tokens`] with it. `Conflict` when two of its
    /// name are valid.
    TokenAdd {
        /// Its name; a second one of the same name takes over from the first, with rights of its own.
        name: String,
        /// What it lets its holder do.
        grant: Grant,
        /// What proofs are checked against.
        keys: TokenKeys,
    },
    /// Ends a token, or all of a name: [`crate::ControlReply::Tokens`] with them. `NotFound` when there is none.
    TokenRemove {
        /// Its id, or a name.
        name: String,
    },
    /// All tokens: [`crate::ControlReply::Tokens`].
    Tokens,
}

/// What a process of the cluster says to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, once a second")]
pub enum MemberRequest {
    /// A worker joins, or comes back: [`crate::ControlReply::View`].
    Register(WorkerInfo),
    /// A worker lives; once a second: [`crate::ControlReply::Beat`]. `NotFound` when it must register again.
    Heartbeat(Heartbeat),
    /// A worker goes, in order: [`crate::ControlReply::Done`].
    Leave(WorkerId),
    /// A worker waits for a reason to send its next heartbeat before its time: [`crate::ControlReply::Done`] as soon as a
    /// window has closed, it has new orders or the view has changed; [`crate::ControlReply::Unchanged`] when nothing did for 3 s.
    News(WorkerId),
    /// The root of the temporary namespace, which another worker has a copy of, is that one's: [`crate::ControlReply::View`].
    /// `Conflict` when the first has it no more, or the other one is not live.
    PassRoot {
        /// Who has it.
        from: WorkerId,
        /// Who gets it.
        to: WorkerId,
    },
    /// The asker is the scheduler of distributed SQL, known for one lease from now on, so that it says so every second. While
    /// another one is known this changes nothing. [`crate::ControlReply::Scheduler`] says which is.
    #[strum(serialize = "scheduler_serves")]
    Scheduler {
        /// Its `host:port`.
        serves: String,
    },
    /// What the proofs of clients are checked against: [`crate::ControlReply::Credentials`].
    Credentials,
}
