//! What a shard takes, file by file, for whoever asks where its bytes are.

use forebay_shard::{Bounds, VerifiedSections};
use forebay_types::{Error, Result};
use serde::Serialize;

use super::Store;
use crate::folder::{FileEntry, Manifest};

/// What a shard is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// Records, without updates that are not compressed yet.
    pub records: u64,
    /// Bytes of keys, values and one delimiter an attribute.
    pub input_bytes: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// Bytes to those of the input.
    pub size: f64,
    /// What the size was set to.
    pub size_set: f64,
    /// Updates that are not compressed yet.
    pub updates: usize,
    /// About their bytes.
    pub update_bytes: usize,
    /// File by file.
    pub parts: Vec<PartInspection>,
}

/// One part.
#[derive(Clone, Debug, Serialize)]
pub struct PartInspection {
    /// What it holds, with the name of its attribute.
    pub part: String,
    /// Its file.
    pub file: String,
    /// Bytes.
    pub bytes: u64,
    /// The sampling rate of a layer of samples: one value in so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

impl Inspection {
    /// All bytes to those of the input.
    pub fn ratio(&self) -> f64 {
        self.size
    }
}

impl Store {
    /// Bytes by part.
    pub fn inspect(&self) -> Result<Inspection> {
        // As it is on disk: a change that goes on holds the other one.
        let manifest = Manifest::read(&self.path)?;
        let view = self.view.load_full();
        let infos = view.shards.iter().map(|mapped| mapped.shard.info());
        let (records, input_bytes) =
            infos.fold((0, 0), |(records, bytes), info| (records + info.records, bytes + info.input_bytes));
        let input_bytes = view.text.as_ref().map_or(input_bytes, |text| text.len());
        let mut parts = Vec::new();
        for files in &manifest.shards {
            let part = |part: String, entry: &FileEntry, rate| PartInspection {
                part,
                file: entry.file.clone(),
                bytes: entry.bytes,
                rate,
            };
            parts.push(part("base".to_string(), &files.base, None));
            for entry in &files.layers {
                let (name, rate) = self.name_of(entry);
                parts.push(part(name, entry, rate));
            }
        }
        let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
        let (updates, update_bytes) = view.pending();
        let size = bytes as f64 / input_bytes.max(1) as f64;
        Ok(Inspection { records, input_bytes, bytes, size, size_set: manifest.size, updates, update_bytes, parts })
    }

    /// Verifies all of its files that was not used yet.
    pub fn verify(&self) -> Result<()> {
        self.view.load().shards.iter().try_for_each(|mapped| mapped.shard.verify())
    }

    /// The same of what tells which keys have records.
    pub fn verify_keys(&self) -> Result<()> {
        self.view.load().shards.iter().try_for_each(|mapped| mapped.keys().map(drop))
    }

    /// What was found to be damaged of its files since they were opened, if anything: no answer that needs it is given.
    pub fn damage(&self) -> Option<Error> {
        self.view.load().shards.iter().find_map(|mapped| mapped.shard.damage())
    }

    /// What of its files has verified, by compressed shard.
    pub fn verified(&self) -> Vec<VerifiedSections> {
        self.view.load().shards.iter().map(|mapped| mapped.shard.verified()).collect()
    }

    /// Takes for verified what was so in another opening of the same folder.
    pub fn adopt_verified(&self, other: &Self) {
        debug_assert_eq!(self.path, other.path, "files are the same in one folder alone");
        let (view, verified) = (self.view.load(), other.verified());
        for mapped in &view.shards {
            verified.iter().for_each(|verified| mapped.shard.believe(*verified));
        }
    }

    /// What the values of each attribute lie between in all that is compressed; none of one without values.
    pub(crate) fn bounds(&self) -> Result<Vec<Option<Bounds>>> {
        let of_both = |one: Option<Bounds>, other: Option<Bounds>| match (one, other) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
        let mut all: Vec<Option<Bounds>> = Vec::new();
        for mapped in &self.view.load().shards {
            let bounds = mapped.shard.bounds()?;
            all.resize(bounds.len(), None);
            all = all.into_iter().zip(bounds).map(|(one, other)| of_both(one, other)).collect();
        }
        Ok(all)
    }

    /// What a layer's file holds, and its sampling rate.
    fn name_of(&self, entry: &FileEntry) -> (String, Option<u64>) {
        use forebay_shard::LayerKind::{Blocks, Index, IsaAttribute, IsaRate, Plain, Postings, SaAttribute, SaRate};
        let Some(id) = entry.layer() else { return (entry.file.clone(), None) };
        let attribute =
            || self.columns.as_ref().and_then(|columns| columns.attributes().nth(id.which.into())).map(|column| &column.name);
        let name = match (id.kind, attribute()) {
            (IsaAttribute | SaAttribute | Index | Postings, Some(name)) => format!("{} {name}", id.kind.name()),
            (kind, _) => kind.name().to_string(),
        };
        let rate = match id.kind {
            SaRate | IsaRate => Some(1 << id.which),
            IsaAttribute | SaAttribute | Blocks | Plain | Index | Postings => None,
        };
        (format!("{name} [{}]", id.slice), rate)
    }
}
