//! The coordinator's orders: which segments and cells to hold, and which to drop.

use std::sync::Arc;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_protocol::{Order, OrderEnd};
use forebay_types::{Cell, FormId, ObjectVersion, PageRun, SEGMENT_BYTES, SegmentId, WorkerId};

use super::{Assigned, Replicas};
use crate::segment::{Segment, SegmentName};

impl Replicas {
    /// Carries out orders, each once however often it is repeated.
    pub(crate) fn obey(self: &Arc<Self>, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Hold { version, index, from } => {
                    if let Some(cell) = Cell::of_index(index) {
                        self.hold_cell(version, index, cell, from);
                        continue;
                    }
                    let Ok(segment) = Segment::holding(&version, u64::from(index) * SEGMENT_BYTES) else { continue };
                    if !self.begin(segment.id) {
                        continue;
                    }
                    self.signals.popularity.learn(segment.id, &version, index);
                    let assigned = Assigned { name: SegmentName { version, index }, since: forebay_runtime::now() };
                    self.state.lock().assigned.insert(segment.id, assigned);
                    let mut tasks = self.tasks.lock();
                    while tasks.try_join_next().is_some() {}
                    let replicas = Arc::clone(self);
                    tasks.spawn(async move {
                        let _room = replicas.room.acquire().await;
                        let id = segment.id;
                        if let Err(error) = replicas.bring(segment, &from).await {
                            tracing::debug!(segment = %id, %error, "replica not loaded");
                            table::WORKER_REPLICAS_FAILED.only().add(1);
                        }
                        replicas.order_ended(id, true);
                    });
                }
                Order::Drop { segment } => {
                    if self.begin(segment) {
                        self.drop_replica(segment);
                        self.order_ended(segment, false);
                    }
                }
            }
        }
    }

    /// Makes a replica of a cell, or of all that are asked for together: from the raw bytes, wherever they are, since that is less to send than
    /// the cell.
    fn hold_cell(self: &Arc<Self>, version: ObjectVersion, index: u32, cell: Cell, from: Vec<WorkerId>) {
        let id = SegmentId::of(&version, index);
        if !self.begin(id) {
            return;
        }
        self.signals.popularity.learn(id, &version, index);
        let assigned = Assigned { name: SegmentName { version: version.clone(), index }, since: forebay_runtime::now() };
        self.state.lock().assigned.insert(id, assigned);
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        let replicas = Arc::clone(self);
        tasks.spawn(async move {
            if let Some((_, form)) = version.form() {
                replicas.learn_form(form, &from).await;
            }
            match cell.is_rows() {
                true => {
                    if let Some(page) = replicas.rows_page(id, &from).await {
                        replicas.forms.order_rows(version, cell.row_group, id, &page).await;
                    }
                }
                false => replicas.forms.order(version, cell, id).await,
            }
            replicas.order_ended(id, true);
        });
    }

    /// What names the columns of a row group that are asked for together, as a worker has it that is asked for them.
    async fn rows_page(&self, id: SegmentId, from: &[WorkerId]) -> Option<Bytes> {
        let page = PageRun::new(0, 1);
        for peer in from {
            let Some(peer) = self.cluster.worker(*peer) else { continue };
            match self.cluster.peers.copy(&peer, id, page).await {
                Ok((runs, pages)) if runs == [page] => return Some(pages),
                Ok(_) => {}
                Err(error) => tracing::debug!(worker = %peer.id, %error, "peer did not say which columns are asked for together"),
            }
        }
        None
    }

    /// Asks those who hold cells of a form what it is, unless readers have said so here.
    async fn learn_form(&self, form: FormId, from: &[WorkerId]) {
        for peer in from {
            if self.forms.known(form).is_some() {
                return;
            }
            let Some(peer) = self.cluster.worker(*peer) else { continue };
            match self.cluster.peers.form(&peer, form).await {
                Ok(Some(known)) => self.forms.learn(&known),
                Ok(None) => {}
                Err(error) => tracing::debug!(worker = %peer.id, %error, "peer did not say what a form is"),
            }
        }
    }

    fn drop_replica(&self, segment: SegmentId) {
        self.state.lock().assigned.remove(&segment);
        let name = self.signals.popularity.name(segment);
        let is_named = name.is_some_and(|name| self.forms.is_named(&name.version, name.index));
        let is_of_use = is_named || self.signals.popularity.is_own(segment);
        // What a reader has pinned is given back when it is done; what the administrator keeps stays, and columns with what names them.
        if !is_of_use && !self.origin.store.held(segment).keep {
            self.origin.store.free(segment);
            table::WORKER_REPLICAS_DROPPED.only().add(1);
        }
    }

    fn order_ended(&self, segment: SegmentId, hold: bool) {
        let held_bytes = self.origin.store.held(segment).bytes;
        let mut state = self.state.lock();
        let ran = state.running.remove(&segment);
        assert!(ran, "an order ends once");
        assert!(state.ended.iter().all(|end| end.segment != segment), "an order that has ended is not begun again");
        state.ended.push(OrderEnd { segment, hold, held_bytes });
        drop(state);
        self.cluster.want_news();
    }
}
