//! Files of shards on this machine, and the objects that they are in shared storage.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use bytes::Bytes;
use forebay_client::Client;
use forebay_shard_store::{DatasetShard, Packed, data_key};
use forebay_types::{Error, ForebayPath, Result, ResultExt};

use crate::open::below;

/// Bytes that are read of a file at once.
const CHUNK: usize = 4 << 20;

/// Stores the files of a shard of the dataset in a folder of a mount.
pub(crate) async fn store_packed(client: &Client, path: &ForebayPath, packed: &Packed, progress: &impl Fn(u64)) -> Result<()> {
    for (file, from) in packed.shard.files.iter().zip(&packed.paths) {
        store(client, &below(path, &data_key(&file.object))?, from, progress).await?;
    }
    if let (Some(file), Some(from)) = (&packed.shard.cold, &packed.cold) {
        store(client, &below(path, &data_key(&file.object))?, from, progress).await?;
    }
    Ok(())
}

async fn store(client: &Client, object: &ForebayPath, from: &Path, progress: &impl Fn(u64)) -> Result<()> {
    let mut file = File::open(from).context(|| from.display())?;
    let mut left = file.metadata().context(|| from.display())?.len();
    let mut writer = client.writer(object).await?;
    while left > 0 {
        // No longer than it has to be: most files of small shards are.
        let read = left.min(CHUNK as u64);
        let mut chunk = vec![0; read as usize];
        file.read_exact(&mut chunk).context(|| from.display())?;
        writer.write(Bytes::from(chunk)).await?;
        left -= read;
        progress(read);
    }
    writer.finish().await?;
    Ok(())
}

/// Brings the files of a shard into a folder, which is made. Opening it verifies their bytes.
pub(crate) async fn bring(client: &Client, path: &ForebayPath, shard: &DatasetShard, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).context(|| to.display())?;
    for file in &shard.files {
        let object = below(path, &data_key(&file.object))?;
        let info = client.open(&object).await?;
        if info.version.size != file.bytes {
            return Err(Error::corrupt(format!("{object}: it has {} bytes, not {}", info.version.size, file.bytes)));
        }
        let to = to.join(&file.name);
        let mut written = File::create(&to).context(|| to.display())?;
        let (operation, mut at) = (client.operation(), 0);
        while at < file.bytes {
            let end = (at + CHUNK as u64).min(file.bytes);
            written.write_all(&client.read(operation, &info.version, at..end).await?).context(|| to.display())?;
            at = end;
        }
        debug_assert_eq!(at, file.bytes, "a file comes whole");
    }
    Ok(())
}
