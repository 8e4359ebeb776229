use forebay_protocol::RangeSpec;
use forebay_types::{Attributes, ErrorKind, Key, MountId, ObjectInfo, Result, Validate};

use crate::latest::{ATTEMPTS, OpenedLatest, first_part};
use crate::read::{Answer, Reader};
use crate::serving::Serving;

/// What a gateway wants of an object.
#[derive(Clone, Copy)]
pub(crate) struct WantedObject {
    pub(crate) range: RangeSpec,
    /// Bytes of the answer at most.
    pub(crate) first: u32,
    /// All attributes, checksums among them.
    pub(crate) complete: bool,
}

impl Serving {
    /// The current version of an object and what the store says of it beside.
    pub(crate) async fn stat(&self, mount: MountId, key: &Key, complete: bool) -> Result<(ObjectInfo, Attributes)> {
        let door = self.mount(mount).await?;
        let rule = self.rule_with(self.rule(&door), mount, key, complete);
        let info = self.versions.resolve(mount, key, rule, self.head(&door, key)).await?;
        self.with_attributes(&door, info).await
    }

    /// As [`Self::read_latest`], with the attributes, and with the first bytes of the range only.
    pub(crate) async fn read_object(
        &self,
        reader: Reader<'_>,
        mount: MountId,
        key: &Key,
        wanted: WantedObject,
    ) -> Result<(ObjectInfo, Attributes, u64, u32, Answer)> {
        let door = self.mount(mount).await?;
        let mut attempt = 1;
        loop {
            let rule = self.rule_with(self.rule(&door), mount, key, wanted.complete);
            let opened = OpenedLatest { range: wanted.range, whole: wanted.complete, rule };
            // The tickets keep what the opening request brings along on its way until the read has joined it.
            let (info, _tickets) = self.latest(&door, key, opened).await?;
            let (info, attributes) = self.with_attributes(&door, info).await?;
            let bytes = first_part(wanted.range, info.version.size)
                .map_err(|error| error.context(format!("/{}/{key}", door.mount.name)))?;
            let first = match wanted.range {
                RangeSpec::Suffix { .. } => bytes.end - bytes.start,
                _ => (bytes.end - bytes.start).min(wanted.first.into()),
            };
            match self.read(reader, &info.version, bytes.start, first as u32).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => attempt += 1,
                result => {
                    // The opening request goes on to its end: the rest of what it brings is read next.
                    if let Some(ticket) = _tickets {
                        ticket.let_go();
                    }
                    return Ok((info, attributes, bytes.start, first as u32, result?));
                }
            }
        }
    }

    /// A version of which nothing is known beside is as good as unknown: the store is asked.
    fn rule_with(&self, rule: Validate, mount: MountId, key: &Key, complete: bool) -> Validate {
        if self.versions.has_attributes(mount, key, complete) { rule } else { Validate::Always }
    }

    async fn with_attributes(
        &self,
        door: &std::sync::Arc<crate::mounts::MountDoor>,
        info: ObjectInfo,
    ) -> Result<(ObjectInfo, Attributes)> {
        if let Some(attributes) = self.versions.attributes(&info.version) {
            return Ok((info, Attributes::clone(&attributes)));
        }
        // Forgotten between two steps, or another version already.
        let asked = std::time::Instant::now();
        let (info, attributes) = door.storage()?.stat(&info.version.key).await?;
        self.versions.learn_with(&info, Some(attributes.clone()), asked);
        Ok((info, attributes))
    }
}
