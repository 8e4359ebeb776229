//! The copy of ingest-then-compute, as fast as the link allows, so that Forebay is compared with a good one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use forebay_types::{Error, Result, ResultExt};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::progress;

/// Bytes of a request, and requests on their way: enough to fill any link that the demo is run with.
const PIECE_BYTES: u64 = 8 << 20;
const AT_ONCE: usize = 16;

/// Copies every object into `folder`, at the full speed of the link.
pub(crate) async fn copy(store: &Arc<dyn ObjectStore>, folder: &Path) -> Result<()> {
    let failed = |error: object_store::Error| Error::internal(format!("the copy failed: {error}"));
    let objects: Vec<_> = store.list(None).try_collect().await.map_err(failed)?;
    let bar = progress::bytes("ingest: copy everything", objects.iter().map(|object| object.size).sum());
    let mut pieces = Vec::new();
    for object in &objects {
        let path = folder.join(object.location.as_ref());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).context(|| parent.display())?;
        }
        let file = Arc::new(File::create(&path).context(|| path.display())?);
        let starts = (0..object.size).step_by(PIECE_BYTES as usize);
        pieces.extend(starts.map(|start| (Arc::clone(&file), &object.location, start..object.size.min(start + PIECE_BYTES))));
    }
    let mut copies = stream::iter(pieces)
        .map(|(file, location, range)| async move {
            let bytes = store.get_range(location, range.clone()).await.map_err(failed)?;
            let length = bytes.len() as u64;
            let written = tokio::task::spawn_blocking(move || file.write_all_at(&bytes, range.start)).await;
            written.map_err(|error| Error::internal(error.to_string()))?.context(|| location)?;
            Ok::<u64, Error>(length)
        })
        .buffer_unordered(AT_ONCE);
    while let Some(bytes) = copies.try_next().await? {
        bar.inc(bytes);
    }
    bar.finish_and_clear();
    Ok(())
}
