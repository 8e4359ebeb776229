//! One shard's folder, opened: questions are answered from a view that changes replace as a whole.

mod answer;
mod background;
mod build;
mod bulk;
mod change;
mod follow;
mod inspect;
mod layers;
mod limits;
mod merge;
mod open;
mod read;
#[cfg(test)]
mod steps;
mod text;
mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_types::{Error, Result};
use parking_lot::{Mutex, RwLock};

pub use answer::{Answered, Batch};
pub use build::Building;
pub use change::Updates;
pub use inspect::{Inspection, PartInspection};
pub use limits::UpdateLimits;
pub use merge::Standing;
pub(crate) use merge::rewrite;
pub use read::{FarAnswer, FarQuestion, SentRecord, Wanted, read_keys, read_records, write_keys};
pub(crate) use view::{Mapped, View, put_values};

use background::{Background, Signal};
use follow::Seen;
use layers::Asked;

use crate::columns::Columns;
use crate::folder::{FolderLock, Manifest, Names};
use crate::log::LocalLog;

/// A shard in a folder. Any number of threads may ask it, also while layers come and go and records are put.
///
/// Readers never wait for a lock: each question is answered from the view that it found when it began. Updates go from
/// the log to a suffix array to the compressed shard by themselves; when the store is dropped, what has begun of that is
/// finished, and the rest goes on when it is opened the next time.
pub struct Store {
    /// What gathers and merges updates; in the handles of these threads themselves there is none.
    background: Vec<Background>,
    path: PathBuf,
    /// None for flat text.
    columns: Option<Columns>,
    view: Arc<ArcSwap<View>>,
    /// What it was asked; flat text doesn't count that.
    asked: Option<Arc<Asked>>,
    /// What the view was made of, for one that was opened to be read only.
    seen: Option<Mutex<Seen>>,
    /// What a change needs; nothing when it was opened to be read only.
    writer: Option<Arc<Writer>>,
}

/// The right to change the folder, and what it takes.
struct Writer {
    log: LocalLog,
    /// Held while a merge goes on; before all others.
    compressing: Mutex<()>,
    /// The manifest as it is on disk; held while layers change, and while what a merge wrote is put in place.
    manifest: Mutex<Manifest>,
    names: Names,
    /// Held while updates are put into a suffix array; after that of the manifest.
    gathering: Mutex<()>,
    /// Shared by those who put updates into the log and the view; held alone to cut the log at a place that the view has.
    publishing: RwLock<()>,
    limits: UpdateLimits,
    gathered: Arc<Signal>,
    merging: Arc<Signal>,
    _lock: FolderLock,
}

impl Store {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is flat text, without records.
    pub fn is_text(&self) -> bool {
        self.columns.is_none()
    }

    /// The columns of its records; an error for flat text, which has none.
    pub fn records(&self) -> Result<&Columns> {
        self.columns.as_ref().ok_or_else(|| {
            Error::invalid(format!("{} is flat text: it has no records, search it for a substring", self.path.display()))
        })
    }

    fn writer(&self) -> Result<&Writer> {
        self.writer.as_deref().ok_or_else(|| Error::internal(format!("{} was opened to be read only", self.path.display())))
    }
}
