//! Files of this machine behind a check of every path, so that no link leads out of the folders that are open.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_data_folder::makes_data_folder;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use crate::reach::LocalFiles;

/// The files of this machine that are in reach: each path is looked at before it is opened, and each that a listing finds, so
/// that no link leads elsewhere.
#[derive(Debug)]
pub(crate) struct Rooted {
    inner: Arc<dyn ObjectStore>,
    files: LocalFiles,
}

impl Rooted {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, files: LocalFiles) -> Self {
        Self { inner, files }
    }

    fn check(&self, path: &Path) -> Result<()> {
        check(&self.files, path)
    }

    /// The same of what is to be written, which makes nothing pass for a data folder of Forebay: nobody would read what is in it.
    fn check_new(&self, path: &Path) -> Result<()> {
        self.check(path)?;
        let local = std::path::Path::new("/").join(path.as_ref());
        match local.parent().zip(path.filename()) {
            Some((folder, name)) if makes_data_folder(folder, name) => {
                let error = forebay_types::Error::denied(format!("{}: choose another name", local.display()));
                Err(Error::PermissionDenied { path: path.to_string(), source: Box::new(error) })
            }
            _ => Ok(()),
        }
    }
}

fn check(files: &LocalFiles, path: &Path) -> Result<()> {
    let local = std::path::Path::new("/").join(path.as_ref());
    let denied = |error: forebay_types::Error| Error::PermissionDenied { path: path.to_string(), source: Box::new(error) };
    files.resolve(&local).map(|_| ()).map_err(denied)
}

forebay_types::shown_as!(Rooted: inner);

#[async_trait]
impl ObjectStore for Rooted {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.check_new(location)?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.check_new(location)?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check(location)?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(location)?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let files = self.files.clone();
        self.inner.delete_stream(locations.map(move |path| path.and_then(|path| check(&files, &path).map(|()| path))).boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Err(error) = self.check(prefix.unwrap_or(&Path::default())) {
            return futures::stream::once(async { Err(error) }).boxed();
        }
        // What a link leads to elsewhere is refused, not left out: an answer without it would be a wrong one.
        let files = self.files.clone();
        self.inner.list(prefix).map(move |meta| meta.and_then(|meta| check(&files, &meta.location).map(|()| meta))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.check(prefix.unwrap_or(&Path::default()))?;
        let listed = self.inner.list_with_delimiter(prefix).await?;
        listed.objects.iter().try_for_each(|meta| self.check(&meta.location))?;
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.check(from)?;
        self.check_new(to)?;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.check(from)?;
        self.check_new(to)?;
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn no_write_makes_a_folder_pass_for_a_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::write(open.join("format"), "1").unwrap();
        let rooted = Rooted::new(Arc::new(InMemory::new()), LocalFiles::Below(vec![open.clone()]));
        for (name, is_written) in [("a.csv", true), ("disk.tier", true), ("owner.secret", false), ("worker.lock", false)] {
            let path = Path::from(open.join(name).display().to_string());
            let written = rooted.put_opts(&path, "x".into(), PutOptions::default()).await;
            assert_eq!(written.is_ok(), is_written, "{name}: {written:?}");
        }
    }
}
