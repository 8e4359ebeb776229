use std::sync::Arc;

use forebay_protocol::{DataReply, DataRequest, ListPage};
use forebay_shared_storage::Storage;
use forebay_types::{ForebayPath, Key, Mount, ObjectInfo, Result, RouteKey};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};

use crate::ask::{ask, misfit};
use crate::attempt::NoAnswer;
use crate::client::Client;
use crate::core::Core;

/// Entries asked for at once.
const PAGE_ENTRIES: u32 = 5_000;

impl Client {
    /// All objects whose keys start with the path's key, byte for byte, in byte order, page by page. With `folders`
    /// keys that go on past the next `/` are gathered into common prefixes.
    pub async fn list(&self, path: &ForebayPath, folders: bool) -> Result<BoxStream<'static, Result<ListPage>>> {
        let mount = self.core.mount(path).await?;
        Ok(self.core.pages(mount, path.key().clone(), folders, None))
    }

    /// One page of a listing: at most `limit` objects and common prefixes behind `after`.
    pub async fn list_page(&self, path: &ForebayPath, folders: bool, after: Option<Key>, limit: u32) -> Result<ListPage> {
        let mount = self.core.mount(path).await?;
        self.core.page(&mount, path.key(), folders, after, limit).await
    }

    /// All objects whose keys start with the path's key. Takes memory for each of them.
    pub async fn list_all(&self, path: &ForebayPath) -> Result<Vec<ObjectInfo>> {
        let pages = self.list(path, false).await?;
        pages
            .try_fold(Vec::new(), |mut all, page| async move {
                all.extend(page.objects);
                Ok(all)
            })
            .await
    }
}

impl Core {
    /// The pages of a listing, each asked for when the one before was taken.
    pub(crate) fn pages(
        self: &Arc<Self>,
        mount: Arc<Mount>,
        prefix: Key,
        folders: bool,
        after: Option<Key>,
    ) -> BoxStream<'static, Result<ListPage>> {
        let core = Arc::clone(self);
        let begin = Some((core, mount, prefix, after));
        try_unfold(begin, move |state| async move {
            let Some((core, mount, prefix, after)) = state else { return Ok(None) };
            let page = core.page(&mount, &prefix, folders, after, PAGE_ENTRIES).await?;
            let next = page.next.clone().map(|after| (core, mount, prefix, Some(after)));
            Ok(Some((page, next)))
        })
        .boxed()
    }

    async fn page(&self, mount: &Mount, prefix: &Key, folders: bool, after: Option<Key>, limit: u32) -> Result<ListPage> {
        let request = DataRequest::List { mount: mount.id, prefix: prefix.clone(), folders, after: after.clone(), limit };
        let deadline = self.settings.read_deadline;
        let answer = self
            .at_home(RouteKey::of_listing(mount.id), |link| {
                let request = &request;
                async move {
                    match ask(&link, request, Vec::new(), deadline).await? {
                        DataReply::Listed(page) => Ok(page),
                        _ => Err(misfit(&link, "list")),
                    }
                }
            })
            .await;
        match answer {
            Ok(page) => Ok(page),
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => {
                let after = after.as_ref();
                let direct = |storage: Storage| async move { storage.list(prefix, folders, after, limit as usize).await };
                let listing = self.fallback.instead(mount, prefix, error, direct).await?;
                Ok(ListPage { objects: listing.objects, folders: listing.folders, next: listing.next })
            }
        }
    }
}
