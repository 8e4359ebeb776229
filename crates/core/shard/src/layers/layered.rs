//! What has layers: a base, and the set of them that is there now.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use forebay_types::{Error, Result};

use super::id::LayerId;
use super::{LayerInfo, LayerSet, VerifiedLayer};
use crate::base::Base;
use crate::sections::{ALL, VerifiedSections};

/// A base with layers, which come and go under readers: a query sees the set that was there when it began, and that set, with the bytes of
/// its layers, goes when its last reader does.
pub struct Layered {
    pub(crate) base: Arc<Base>,
    pub(crate) layers: ArcSwap<LayerSet>,
}

impl Layered {
    /// Verifies the layers and puts them in.
    pub(crate) fn new(base: Base, layers: impl IntoIterator<Item = Bytes>) -> Result<Self> {
        let mut set = LayerSet::empty(&base);
        for bytes in layers {
            set.put(&base, &VerifiedLayer::new(&base, bytes)?);
        }
        Ok(Self { base: Arc::new(base), layers: ArcSwap::from_pointee(set) })
    }

    /// Verifies all of the base that was not used yet; else each of its sections is verified at its first use.
    pub fn verify(&self) -> Result<()> {
        self.base.need(ALL)
    }

    /// What of the base was found to be damaged, if anything: what needs it fails so.
    pub fn damage(&self) -> Option<Error> {
        self.base.sections.damage()
    }

    /// What of the base has verified.
    pub fn verified(&self) -> VerifiedSections {
        self.base.sections.verified()
    }

    /// Takes for verified what was so when the same file was opened another time; nothing of another base.
    pub fn believe(&self, verified: VerifiedSections) {
        self.base.sections.believe(verified);
    }

    /// The layers, with what each takes.
    pub fn layers(&self) -> Vec<LayerInfo> {
        self.layers.load().infos()
    }

    /// Verifies a layer's part and adds it, or puts it in the place of the slice that is being filled. Readers go on.
    pub fn add_layer(&self, part: Bytes) -> Result<LayerId> {
        let layer = self.verify_layer(part)?;
        self.replace_layers(&[], std::slice::from_ref(&layer));
        Ok(layer.id())
    }

    /// Verifies a layer's part, for [`replace_layers`](Self::replace_layers).
    pub fn verify_layer(&self, part: Bytes) -> Result<VerifiedLayer> {
        VerifiedLayer::new(&self.base, part)
    }

    /// Drops slices and puts others in; a new slice replaces one with its id. A query sees all of these changes or none.
    pub fn replace_layers(&self, gone: &[LayerId], new: &[VerifiedLayer]) {
        self.layers.rcu(|present| {
            let mut next = (**present).clone();
            next.replace(&self.base, gone, new);
            next
        });
    }
}
