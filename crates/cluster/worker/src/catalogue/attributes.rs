//! What the store says of an object beside its version.

use std::sync::Arc;

use forebay_types::{Attributes, Key, MountId, ObjectInfo, Result, Validate};

use super::Catalogue;
use crate::origin::MountDoor;

impl Catalogue {
    /// The current version of an object and what the store says of it beside.
    pub(crate) async fn stat(&self, mount: MountId, key: &Key, complete: bool) -> Result<(ObjectInfo, Attributes)> {
        let door = self.origin.mount(mount).await?;
        let rule = self.rule_with(&door, key, complete);
        let info = self.versions.resolve(mount, key, rule, self.head(&door, key)).await?;
        self.with_attributes(&door, info).await
    }

    /// The mount's rule. A version of which nothing is known beside is as good as unknown: the store is asked.
    pub(crate) fn rule_with(&self, door: &MountDoor, key: &Key, complete: bool) -> Validate {
        if self.versions.has_attributes(door.mount.id, key, complete) { self.rule(door) } else { Validate::Always }
    }

    /// What the store says of a version beside; of the one that is current now when that can't be known any more.
    pub(crate) async fn with_attributes(&self, door: &Arc<MountDoor>, info: ObjectInfo) -> Result<(ObjectInfo, Attributes)> {
        if let Some(attributes) = self.versions.attributes(&info.version) {
            return Ok((info, Attributes::clone(&attributes)));
        }
        // Forgotten between two steps, or another version already.
        let asked = forebay_runtime::now();
        let (info, attributes) = door.storage()?.stat(&info.version.key).await?;
        self.versions.learn_with(&info, Some(attributes.clone()), asked);
        Ok((info, attributes))
    }

    /// The version that stands under the mount's rule, with what is said of it beside, if all of that is known.
    pub(crate) fn at_hand(&self, door: &MountDoor, key: &Key, complete: bool) -> Option<(ObjectInfo, Arc<Attributes>)> {
        self.versions.at_hand(door.mount.id, key, door.mount.options.validate, complete)
    }
}
