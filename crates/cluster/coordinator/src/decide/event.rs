//! All that passes between the decision and its driver: events go in, commands come out.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::{ControlCall, ControlReply, Pin, TableDefinition};
use forebay_types::{Grant, Key, Mount, MountId, MountName, MountOptions, TokenKeys, Verifier, WorkerId};

use super::{Checkpoint, Outcome, Problem};

/// What has happened.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one event at a time, taken apart as soon as it comes")]
pub(crate) enum Event {
    /// Someone asks. Ends in exactly one `Answer`, at once or after what the commands say.
    Asked(ControlCall),
    /// The database has written a change.
    Stored(Stored),
    /// The catalogue was read anew, after a write whose outcome is not known.
    Loaded(Catalogue),
    /// The plan that was asked for is made, and took so long.
    Planned(Box<Outcome>, Duration),
    Tick,
}

/// What the driver does next, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Answers whoever asked.
    Answer(ControlReply),
    /// Asks shared storage whether this mount can be used, and writes the change if so. The mount's id is not given yet.
    Check(Box<Mount>, Change),
    /// Writes a change to the database; then comes [`Event::Stored`].
    Write(Change),
    /// Keeps the ids and addresses of workers that live or may, so that the next coordinator knows who may hold shares, and where each is.
    Remember(Vec<(WorkerId, String)>),
    /// Tells people that a worker's lease ran out.
    ReportLost(WorkerId, String),
    /// Makes a plan; then comes [`Event::Planned`].
    Plan(Box<Problem>),
    /// Keeps popularity and routes for the next coordinator.
    Checkpoint(Box<Checkpoint>),
    /// Wakes all workers: a window has closed, or the view or the credentials have changed.
    TellAll,
    /// Wakes workers that have new orders.
    Tell(Vec<WorkerId>),
}

pub(super) fn answer(reply: ControlReply) -> Command {
    Command::Answer(reply)
}

/// Mounts, pins, external tables and tokens, as the database has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Catalogue {
    pub(crate) mounts: BTreeMap<MountId, Mount>,
    pub(crate) pins: Vec<Pin>,
    pub(crate) tables: BTreeMap<String, TableDefinition>,
    pub(crate) tokens: BTreeMap<String, Verifier>,
}

/// A change of the catalogue, valid when it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    AddMount { name: MountName, url: String, options: MountOptions },
    SetMount { name: MountName, options: MountOptions },
    RemoveMount { name: MountName },
    AddPin { mount: MountId, prefix: Key },
    RemovePin { mount: MountId, prefix: Key },
    PutTable { table: TableDefinition, replace: bool },
    RemoveTable { name: String },
    AddToken { id: String, grant: Grant, keys: TokenKeys },
    RemoveTokens { ids: Vec<String> },
}

/// A change that the database has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stored {
    /// Added, or its options are changed.
    Mount(Mount),
    MountRemoved(MountId),
    Pin(MountId, Key),
    PinRemoved(MountId, Key),
    Table(TableDefinition),
    TableRemoved(String),
    Token(Verifier),
    TokensRemoved(Vec<String>),
}
