//! The making of cells, one after the other.

use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::SegmentSpec;
use forebay_placement::{FormCandidate, FormCosts, form_misses, form_pays};
use forebay_transport::caught_future;
use forebay_types::{Cell, Error, HotForm, Owner, PageRun, Result, SegmentId};

use super::Forms;
use super::queue::{Job, Outcome};
use super::room::Tier;
use super::thread::Threads;
use crate::signals::Seen;

/// Bytes that are put into the store before other tasks of the thread get their turn.
const CHUNK_BYTES: usize = 256 << 10;
/// How long a column waits for readers to be done before it is decoded anyway.
const BEHIND_READERS: Duration = Duration::from_millis(20);

impl Forms {
    /// Makes what stands in line, one after the other.
    pub(super) async fn make_forms(self: Arc<Self>) {
        let decoder = match Threads::start("forebay-decode", 1, 1) {
            Ok(decoder) => decoder,
            Err(error) => {
                tracing::warn!(%error, "no thread for decoding: files stay in their raw form");
                return;
            }
        };
        loop {
            let job = self.wishes.next().await;
            let (outcome, cells) = caught_future(self.make_form(&decoder, &job)).await.unwrap_or_else(|| {
                tracing::error!(key = %job.version.key, "the making of a column failed by a defect");
                (Outcome::Never, vec![job.id])
            });
            self.wishes.ended(job, outcome, &cells);
        }
    }

    /// How it ended, and of which cells: the job's own, and others that were tried with it.
    async fn make_form(&self, decoder: &Threads, job: &Job) -> (Outcome, Vec<SegmentId>) {
        let own = vec![job.id];
        if self.origin.store.pin_whole(job.id).is_some() {
            return (Outcome::Made, own);
        }
        if job.ordered.is_none() && self.wishes.is_quiet(job.id) {
            return (Outcome::NotNow, own);
        }
        let door = match self.origin.mount(job.version.mount).await {
            Ok(door) if door.mount.options.hot_form == HotForm::Table => door,
            _ => return (Outcome::NotNow, own),
        };
        let (made, cells) = match job.version.form() {
            Some((version, form)) => {
                let columns = self.wanted_columns(job);
                let made = self.make_columns(decoder, job, &door, (&version, form), &columns).await;
                (made, columns.into_iter().map(|(_, id)| id).collect())
            }
            None => (self.make_column(decoder, job, &door).await, own),
        };
        let outcome = made.unwrap_or_else(|error| {
            let (row_group, column) = (job.cell.row_group, job.cell.column);
            tracing::debug!(key = %job.version.key, row_group, column, %error, "column not decoded");
            Outcome::NotNow
        });
        (outcome, cells)
    }

    /// Whether a column is worth making, read together with these others; where only room is missing, that is remembered.
    pub(super) fn pays(&self, own: (FormCosts, FormCandidate), others: &[(FormCosts, FormCandidate)]) -> bool {
        let store = &self.origin.store;
        let measure = || (Seen::of_dram(store, &self.signals.meters, self.room.reads()), store.dram_form_regret());
        let room = self.room.now(Tier::of(&store.usage().dram), measure);
        if let Some(missed) = form_misses(own, others, room) {
            self.room.missed(missed);
        }
        form_pays(own, others, room)
    }

    pub(super) async fn keep_form(&self, job: &Job, cell: Cell, id: SegmentId, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        let run = PageRun::covering(0..len).ok_or_else(|| Error::internal("a decoded column has no bytes"))?;
        let spec = SegmentSpec { id, bytes: bytes.len() as u32, owner: Owner::Form, keep: false };
        let mut fill = self.origin.store.begin_fill(spec, run)?;
        for (at, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            fill.write((at * CHUNK_BYTES) as u64, chunk)?;
            tokio::task::yield_now().await;
        }
        fill.finish()?;
        if let Some(index) = cell.index() {
            self.signals.popularity.learn(id, &job.version, index);
        }
        Ok(())
    }

    /// Lets readers that are being answered go first.
    pub(super) async fn wait_for_readers(&self) {
        let quiet = async {
            while self.signals.load.queue() > 0 {
                forebay_runtime::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // After that it is its turn: it runs at low priority anyway.
        let _ = forebay_runtime::time::timeout(BEHIND_READERS, quiet).await;
    }
}
