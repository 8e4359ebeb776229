//! What is known of objects: which versions are current, and which objects there are.

use std::sync::Arc;

use forebay_protocol::{DataReply, DataRequest, ListPage};
use forebay_shared_storage::Storage;
use forebay_types::{Attributes, ForebayPath, Key, Mount, ObjectInfo, Result, RouteKey};
use futures::stream::{BoxStream, StreamExt, try_unfold};

use super::Reads;
use crate::connect::{Failure, Link, ask, misfit};
use crate::route::NoAnswer;

/// Entries asked for at once.
const PAGE_ENTRIES: u32 = 5_000;

impl Reads {
    /// The current version of an object, as fresh as its mount's rule wants it. `NotFound` when there is none.
    pub(crate) async fn open(&self, path: &ForebayPath) -> Result<ObjectInfo> {
        let mount = self.routes.mount(path).await?;
        let request = DataRequest::Open { mount: mount.id, key: path.key().clone() };
        let answered = self.at_home(RouteKey::of(mount.id, path.key(), 0), &request, |link, reply| match reply {
            DataReply::Info(info) => Ok(info),
            _ => Err(misfit(link, "open")),
        });
        let direct = |storage: Storage| async move { storage.head(path.key()).await };
        self.or_storage(answered.await, || Ok(mount), path.key(), direct).await
    }

    /// The same, and what the store says of it beside; `complete` wants its checksums too.
    pub(crate) async fn stat(&self, path: &ForebayPath, complete: bool) -> Result<(ObjectInfo, Attributes)> {
        let mount = self.routes.mount(path).await?;
        let request = DataRequest::Stat { mount: mount.id, key: path.key().clone(), complete };
        let answered = self.at_home(RouteKey::of(mount.id, path.key(), 0), &request, |link, reply| match reply {
            DataReply::Stat(info, attributes) => Ok((info, attributes)),
            _ => Err(misfit(link, "stat")),
        });
        let direct = |storage: Storage| async move { storage.stat(path.key()).await };
        self.or_storage(answered.await, || Ok(mount), path.key(), direct).await
    }

    /// The pages of a listing, each asked for when the one before was taken.
    pub(crate) fn pages(
        self: &Arc<Self>,
        mount: Arc<Mount>,
        prefix: Key,
        folders: bool,
        after: Option<Key>,
    ) -> BoxStream<'static, Result<ListPage>> {
        let begin = Some((Arc::clone(self), mount, prefix, after));
        try_unfold(begin, move |state| async move {
            let Some((reads, mount, prefix, after)) = state else { return Ok(None) };
            let page = reads.page(&mount, &prefix, folders, after, PAGE_ENTRIES).await?;
            let next = page.next.clone().map(|after| (reads, mount, prefix, Some(after)));
            Ok(Some((page, next)))
        })
        .boxed()
    }

    /// At most `limit` objects and common prefixes behind `after`.
    pub(crate) async fn page(
        &self,
        mount: &Arc<Mount>,
        prefix: &Key,
        folders: bool,
        after: Option<Key>,
        limit: u32,
    ) -> Result<ListPage> {
        let request = DataRequest::List { mount: mount.id, prefix: prefix.clone(), folders, after: after.clone(), limit };
        let answered = self.at_home(RouteKey::of_listing(mount.id), &request, |link, reply| match reply {
            DataReply::Listed(page) => Ok(page),
            _ => Err(misfit(link, "list")),
        });
        let after = after.as_ref();
        let direct = |storage: Storage| async move { storage.list(prefix, folders, after, limit as usize).await };
        self.or_storage(answered.await, || Ok(Arc::clone(mount)), prefix, direct).await
    }

    /// Makes all workers forget what they know of the versions and listings below a path.
    pub(crate) async fn refresh(&self, path: &ForebayPath) -> Result<()> {
        let mount = self.routes.mount(path).await?;
        let request = DataRequest::Refresh { mount: mount.id, prefix: path.key().clone() };
        self.routes.at_all_workers(std::slice::from_ref(&request), &[]).await?;
        Ok(())
    }

    /// Asks the workers that are a route's home; `fits` takes the answer out of the reply.
    async fn at_home<T>(
        &self,
        route: RouteKey,
        request: &DataRequest,
        fits: impl Fn(&Link, DataReply) -> Result<T, Failure>,
    ) -> Result<T, NoAnswer> {
        let (deadline, fits) = (self.routes.connections.read_deadline(), &fits);
        let once = |link: Link| async move { fits(&link, ask(&link, request, deadline).await?) };
        self.routes.at_home(route, once).await
    }
}
