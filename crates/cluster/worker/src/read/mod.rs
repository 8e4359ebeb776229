//! Answers to readers.
//!
//! Owns: the way of a read from its first look at the tiers to its answer (bytes, or where they are), and the counting of it.
//!
//! Never does: look at who reads, which `session` has done, or at what is read in another form, which `forms` does.
//!
//! Start with [`Reads::version`].

mod answer;
mod at_hand;
mod current;
mod version;

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{AccessWay, InPlaceCount};
use forebay_types::{Cell, SEGMENT_BYTES};

pub(crate) use answer::{Answer, Reader, answer};
pub(crate) use current::{Current, WantedObject};

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::in_place::InPlace;
use crate::origin::Origin;
use crate::signals::{Made, Signals};

/// Reads of objects.
pub(crate) struct Reads {
    origin: Arc<Origin>,
    catalogue: Arc<Catalogue>,
    cluster: Arc<Cluster>,
    in_place: Arc<InPlace>,
    signals: Arc<Signals>,
}

impl Reads {
    pub(crate) fn new(
        origin: Arc<Origin>,
        catalogue: Arc<Catalogue>,
        cluster: Arc<Cluster>,
        in_place: Arc<InPlace>,
        signals: Arc<Signals>,
    ) -> Self {
        Self { origin, catalogue, cluster, in_place, signals }
    }

    /// Reads in place that a client reports.
    pub(crate) fn count_in_place(&self, counts: &[InPlaceCount]) {
        for count in counts {
            let bytes = count.bytes.min(u64::from(count.reads) * SEGMENT_BYTES);
            // The store wants to know how many times over the segment was read: a scan in small reads is one time.
            let held = self.origin.store.held(count.segment).dram_bytes.max(1);
            let times = bytes.div_ceil(held).min(u64::from(count.reads)) as u32;
            self.origin.store.touch(count.segment, None, times);
            if self.signals.accessed.is_on() {
                self.record_in_place(count, bytes);
            }
            let door = self.signals.popularity.mount(count.segment).and_then(|mount| self.origin.mounts.find(mount));
            self.signals.meters.read(door.as_ref().map(|door| &*door.reads), count.reads.into(), bytes, bytes);
            self.signals.popularity.read(count.operation, count.segment, count.reads.into(), bytes, Duration::ZERO);
        }
    }

    /// Clients say of which segment they read, and not where.
    fn record_in_place(&self, count: &InPlaceCount, bytes: u64) {
        let Some(name) = self.signals.popularity.name(count.segment).filter(|_| count.reads > 0) else { return };
        let (start, way) = match Cell::of_index(name.index) {
            Some(_) => (0, AccessWay::Decoded),
            None => (u64::from(name.index) * SEGMENT_BYTES, AccessWay::InPlace),
        };
        self.signals.accessed.made(&Made {
            operation: Some(count.operation),
            object: (name.version.mount, &name.version.key),
            start,
            bytes: bytes.div_ceil(count.reads.into()),
            times: count.reads,
            way,
        });
    }
}
