//! The table form of popular columns: made once from the bytes that are held, kept as any segment. Where it is there again sooner from disk
//! than decoded anew, the disk tier has it too, compressed.
//!
//! A column of a row group of Parquet is made by itself. Of text, the columns of a chunk that readers ask for together are
//! made in one reading of its lines, which is most of the work.
//!
//! Rows of cells are selected for readers of other hosts by threads of their own, and counted by the columns that are asked for together.
//!
//! Owns: what is wished for and how often, what making it costs, and the threads that make it and select of it.
//!
//! Never does: ask shared storage for anything.
//!
//! Start with [`Forms::read_cell`].

mod cell;
mod clock;
mod costs;
mod disk;
mod gather;
mod known;
mod make;
mod parquet;
mod queue;
mod read;
mod room;
mod rows;
mod select;
mod text;
mod thread;

use std::sync::Arc;

use forebay_placement::FormDisk;
use forebay_types::{Cell, FormId, ObjectVersion, SegmentId, TextForm};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::origin::Origin;
use crate::signals::Signals;
use costs::Costs;
use known::KnownForms;
use parquet::Footers;
use queue::Wishes;
use room::{Room, Tier};
use select::Selectors;

/// Cells: columns of a part of a file in the table form.
pub(crate) struct Forms {
    wishes: Wishes,
    costs: Costs,
    /// What columns have cost that came back from the disk tier.
    disk: Mutex<FormDisk>,
    footers: Footers,
    known: KnownForms,
    /// How much of the DRAM tier columns may take.
    room: Room,
    task: Mutex<Option<JoinHandle<()>>>,
    selectors: Selectors,
    /// Held while it is changed which columns are asked for together.
    rows: Mutex<()>,
    origin: Arc<Origin>,
    cluster: Arc<Cluster>,
    signals: Arc<Signals>,
}

impl Forms {
    pub(crate) fn new(origin: Arc<Origin>, cluster: Arc<Cluster>, signals: Arc<Signals>) -> Self {
        Self {
            wishes: Wishes::default(),
            costs: Costs::default(),
            disk: Mutex::default(),
            footers: Footers::default(),
            known: KnownForms::default(),
            room: Room::default(),
            task: Mutex::default(),
            selectors: Selectors::default(),
            rows: Mutex::default(),
            origin,
            cluster,
            signals,
        }
    }

    /// Makes what stands in line, one after the other, until [`Self::stop`].
    pub(crate) fn start(self: &Arc<Self>) {
        *self.task.lock() = Some(forebay_runtime::spawn(Arc::clone(self).make_forms()));
    }

    /// Ends the making of forms.
    pub(crate) fn stop(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }

    /// What is known of a form that text files are taken for.
    pub(crate) fn known(&self, form: FormId) -> Option<Arc<TextForm>> {
        self.known.get(form)
    }

    /// Remembers a form that has been checked.
    pub(crate) fn learn(&self, form: &Arc<TextForm>) {
        self.known.put(form.id(), form);
    }

    /// How much of the DRAM tier columns may take, and why.
    pub(crate) fn room(&self) -> room::Told {
        self.room.told(Tier::of(&self.origin.store.usage().dram))
    }

    /// Makes a cell that the coordinator wants here; ready when it is there, or can't be.
    pub(crate) async fn order(&self, version: ObjectVersion, cell: Cell, id: SegmentId) {
        self.wishes.order(version, cell, id).await;
    }

    /// The cells that were made of the object whose first segment this is, and their copies on disk; they are forgotten here.
    pub(crate) fn take_cells(&self, first: SegmentId) -> Vec<SegmentId> {
        self.wishes.take_cells(first).into_iter().flat_map(|id| [id, id.packed()]).collect()
    }
}
