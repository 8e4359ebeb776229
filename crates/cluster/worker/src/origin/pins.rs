//! What the administrator keeps in the tiers.

use arc_swap::ArcSwap;
use forebay_protocol::Pin;
use forebay_types::{Key, MountId};

/// The administrator's pins: what is fetched below them is kept from the start. What was here before is kept at the
/// client's word.
#[derive(Default)]
pub(crate) struct Pins(ArcSwap<Vec<Pin>>);

impl Pins {
    /// Takes over the pins of a view.
    pub(crate) fn set(&self, pins: Vec<Pin>) {
        self.0.store(pins.into());
    }

    /// Whether an object lies below a pin.
    pub(crate) fn keep(&self, mount: MountId, key: &Key) -> bool {
        self.0.load().iter().any(|pin| pin.mount == mount && key.as_str().starts_with(pin.prefix.as_str()))
    }
}
