//! From a shard's folder to objects.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use forebay_types::{Error, Result, ResultExt};
use xxhash_rust::xxh3::Xxh3;

use super::{DatasetCold, DatasetFile, DatasetShard, bounds};
use crate::folder::{MANIFEST, Manifest, map};
use crate::store::Store;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

/// A shard that is about to be stored: what a manifest says of it, and where each of its files is now.
pub struct Packed {
    /// For the manifest.
    pub shard: DatasetShard,
    /// The files in the same order.
    pub paths: Vec<PathBuf>,
    /// The cold file, where the shard has one.
    pub cold: Option<PathBuf>,
}

impl Packed {
    /// The bytes of the file at a place among them; they stay on the disk until they are read.
    pub fn bytes(&self, place: usize) -> Result<Bytes> {
        map(&self.paths[place])
    }

    /// The bytes of the cold file, the same way.
    pub fn cold_bytes(&self) -> Result<Option<Bytes>> {
        self.cold.as_deref().map(map).transpose()
    }
}

/// Looks through a shard's folder, and verifies its files: what is stored from here on is believed by its new checksums. `Invalid` for flat
/// text, and for a shard with updates that are not merged yet.
pub fn pack(folder: &Path) -> Result<Packed> {
    let manifest = Manifest::read(folder)?;
    let store = Store::open(folder)?;
    store.verify()?;
    let inspection = store.inspect()?;
    if manifest.columns.is_none() {
        return Err(Error::invalid(format!("{} is flat text: a dataset is made of records", folder.display())));
    }
    if inspection.updates > 0 {
        return Err(Error::invalid(format!("{} has updates that are not merged: `forebay shard merge` it", folder.display())));
    }
    let names = std::iter::once(MANIFEST).chain(manifest.files().map(|entry| entry.file.as_str()));
    let paths: Vec<PathBuf> = names.map(|name| folder.join(name)).collect();
    let files = paths.iter().map(|path| describe(path)).collect::<Result<_>>()?;
    let cold_path = manifest.cold.as_ref().map(|cold| folder.join(&cold.entry.file));
    let cold = match (&manifest.cold, &cold_path) {
        (Some(cold), Some(path)) => Some(describe_cold(path, cold.tail_bytes)?),
        _ => None,
    };
    let (records, input_bytes) = (inspection.records, inspection.input_bytes);
    let bounds = bounds::kept(&store.bounds()?);
    let shard = DatasetShard { records, input_bytes, files, cold, log_from: 1, asked: None, bounds };
    Ok(Packed { shard, paths, cold: cold_path })
}

fn describe_cold(path: &Path, tail_bytes: u64) -> Result<DatasetCold> {
    let DatasetFile { object, bytes, .. } = describe(path)?;
    if tail_bytes > bytes {
        return Err(Error::corrupt(format!(
            "{}: it has {bytes} bytes, and its tail {tail_bytes}: build it again",
            path.display()
        )));
    }
    Ok(DatasetCold { object, bytes, tail_bytes })
}

fn describe(path: &Path) -> Result<DatasetFile> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
    let mut file = File::open(path).context(|| path.display())?;
    let (mut hash, mut crc32c, mut bytes) = (Xxh3::new(), 0, 0);
    // A name of its own, also where another object has the same bytes: that one may be garbage, and about to be deleted.
    hash.update(&forebay_runtime::random::<u128>().to_le_bytes());
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk).context(|| path.display())?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        crc32c = forebay_types::crc32c_append(crc32c, &chunk[..read]);
        bytes += read as u64;
    }
    Ok(DatasetFile { name, object: format!("{:032x}", hash.digest128()), bytes, crc32c })
}
