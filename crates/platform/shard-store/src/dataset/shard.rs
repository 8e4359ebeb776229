//! What belongs to one shard of a dataset.

use std::path::Path;

use forebay_shard::{ATTRIBUTES_MAX, Query, is_excluded};
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

use super::bounds::{self, DatasetBounds};
use super::names::is_hash;
use crate::columns::Columns;
use crate::folder::AskedShares;

/// Files of a shard at most.
const FILES_MAX: usize = 4096;
/// Bytes of a cold file's tail, which is read whole.
const TAIL_BYTES_MAX: u64 = 16 << 20;

/// One shard of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetShard {
    /// Its records.
    pub records: u64,
    /// Bytes of its keys and values.
    pub input_bytes: u64,
    /// What its folder is made of.
    pub files: Vec<DatasetFile>,
    /// The number of the first object of its log that is not in these files yet.
    #[serde(default = "first_in_log")]
    pub log_from: u64,
    /// The same records as a cold file; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<DatasetCold>,
    /// What it was asked until its files were made; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedShares>,
    /// What the values of each attribute lie between in these files; none where that is not known, as of attributes behind the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Option<DatasetBounds>>,
}

/// A shard's cold file: what gets and equalities are answered from where no worker has the shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetCold {
    /// The object's name, which no other one had or will have.
    pub object: String,
    /// Its length.
    pub bytes: u64,
    /// How many of these, at the end, are its tail, which is read first.
    pub tail_bytes: u64,
}

fn first_in_log() -> u64 {
    1
}

/// A file of a shard, and the object that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetFile {
    /// Its name in the shard's folder.
    pub name: String,
    /// The object's name, which no other one had or will have.
    pub object: String,
    /// Its length.
    pub bytes: u64,
    /// The checksum of its bytes.
    pub crc32c: u32,
}

impl DatasetShard {
    /// The names of all of its objects.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let cold = self.cold.iter().map(|cold| cold.object.as_str());
        self.files.iter().map(|file| file.object.as_str()).chain(cold)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |bytes, file| bytes.saturating_add(file.bytes))
    }

    /// Says whether no record in its files meets a query; what its log says is not in them.
    pub fn excluding(&self, columns: &Columns) -> impl Fn(&Query) -> bool + use<> {
        let (bounds, schema) = (bounds::read(&self.bounds).unwrap_or_default(), columns.schema());
        move |query: &Query| is_excluded(query, &schema, &bounds)
    }

    pub(super) fn check(&self) -> Result<()> {
        // Names of the folder's own files: whoever wrote this may not choose others of the disk.
        let is_name = |name: &str| Path::new(name).file_name().is_some_and(|file| file == name);
        if let Some(DatasetCold { object, bytes, tail_bytes }) = &self.cold
            && !(is_hash(object) && tail_bytes <= bytes && *tail_bytes <= TAIL_BYTES_MAX)
        {
            return Err(Error::corrupt("a shard's cold file is not named and cut as such files are"));
        }
        if self.asked.as_ref().is_some_and(|asked| !asked.is_sound()) {
            return Err(Error::corrupt("what a shard was asked is of more attributes than shards have"));
        }
        if self.bounds.len() > ATTRIBUTES_MAX {
            return Err(Error::corrupt("a shard has values of more attributes than shards have"));
        }
        bounds::read(&self.bounds)?;
        let fits = self.files.iter().all(|file| is_name(&file.name) && is_hash(&file.object));
        match fits && self.log_from > 0 && !self.files.is_empty() && self.files.len() <= FILES_MAX {
            true => Ok(()),
            false => Err(Error::corrupt("a shard's files are not named and numbered as such files are")),
        }
    }
}
