//! A file's bytes in order, a window at a time.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::fault::{Result, damage};

/// A file from its beginning on, of which little is in memory at a time.
pub(super) struct Input {
    windows: BoxStream<'static, object_store::Result<Bytes>>,
    held: BytesMut,
    pub(super) left: u64,
}

impl Input {
    /// For reading all of it.
    pub(super) fn all(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Self {
        Self::new(store, file, 4 << 20, 2)
    }

    /// For reading its first bytes.
    pub(super) fn head(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Self {
        Self::new(store, file, 64 << 10, 1)
    }

    fn new(store: &Arc<dyn ObjectStore>, file: &ObjectMeta, window_bytes: u64, ahead: usize) -> Self {
        let (store, location, size) = (Arc::clone(store), file.location.clone(), file.size);
        let fetch = move |at: u64| {
            let (store, location) = (Arc::clone(&store), location.clone());
            async move { store.get_range(&location, at * window_bytes..size.min((at + 1) * window_bytes)).await }
        };
        let windows = stream::iter(0..size.div_ceil(window_bytes)).map(fetch).buffered(ahead).boxed();
        Self { windows, held: BytesMut::new(), left: size }
    }

    /// Makes sure that so many bytes are in memory; false where the file ends before.
    pub(super) async fn fill(&mut self, bytes: u64) -> Result<bool> {
        if bytes > self.left {
            return Ok(false);
        }
        let Ok(wanted) = usize::try_from(bytes) else { return Ok(false) };
        // The file is as long as that, whatever it says.
        self.held.reserve(wanted.saturating_sub(self.held.len()));
        while self.held.len() < wanted {
            match self.windows.try_next().await? {
                Some(window) => self.held.extend_from_slice(&window),
                None => return damage("it is shorter than its store says"),
            }
        }
        Ok(true)
    }

    /// Bytes that are in memory and not taken.
    pub(super) fn peek(&self) -> &[u8] {
        &self.held
    }

    /// Takes bytes that [`fill`](Self::fill) has made sure of.
    pub(super) fn take(&mut self, bytes: usize) -> Bytes {
        self.left -= bytes as u64;
        self.held.split_to(bytes).freeze()
    }
}
