//! What is set of a node, in four bytes.

use serde::{Deserialize, Serialize};

use crate::terms::StorageClass;

/// What is set of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flags {
    bits: u8,
    /// The number of its location, which is another one in another part of the namespace.
    #[serde(skip)]
    label: u16,
}

impl Flags {
    const HIDDEN: u8 = 1;
    const DISK: u8 = 2;
    const LEASED: u8 = 4;
    const MOVING: u8 = 8;

    pub(crate) fn new(enumerable: bool, class: StorageClass, label: u16) -> Self {
        let bits = if enumerable { 0 } else { Self::HIDDEN } | if class == StorageClass::Disk { Self::DISK } else { 0 };
        Self { bits, label }
    }

    pub(crate) fn label(self) -> u16 {
        self.label
    }

    pub(crate) fn set_label(&mut self, label: u16) {
        self.label = label;
    }

    pub(crate) fn is_enumerable(self) -> bool {
        self.bits & Self::HIDDEN == 0
    }

    pub(crate) fn class(self) -> StorageClass {
        if self.bits & Self::DISK == 0 { StorageClass::Dram } else { StorageClass::Disk }
    }

    pub(crate) fn set_enumerable(&mut self, enumerable: bool) {
        self.set(Self::HIDDEN, !enumerable);
    }

    pub(crate) fn is_leased(self) -> bool {
        self.bits & Self::LEASED != 0
    }

    pub(crate) fn set_leased(&mut self, leased: bool) {
        self.set(Self::LEASED, leased);
    }

    /// On its way to or from another worker: hidden at the target, and not to be changed at the source.
    pub(crate) fn is_moving(self) -> bool {
        self.bits & Self::MOVING != 0
    }

    pub(crate) fn set_moving(&mut self, moving: bool) {
        self.set(Self::MOVING, moving);
    }

    fn set(&mut self, bit: u8, on: bool) {
        self.bits = if on { self.bits | bit } else { self.bits & !bit };
    }
}
