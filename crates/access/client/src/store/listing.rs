//! Listings, as the trait wants them.

use std::sync::Arc;

use forebay_protocol::ListPage;
use forebay_types::{ForebayPath, Key, Mount, MountName, ObjectInfo};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ListResult, ObjectMeta, Result};
use tracing::debug;

use super::errors::to_store_error;
use super::paths::{Metas, from_store, meta, to_store};
use super::temporary;
use super::versions::Versions;

/// All objects below a path (or of all mounts, without temporary data), after an offset.
pub(super) fn list<V: Versions>(versions: V, prefix: Option<Path>, offset: Option<Path>) -> Metas {
    if let Some(prefix) = prefix.as_ref().filter(|prefix| is_temporary(prefix)) {
        return temporary::list(versions, prefix.clone(), offset);
    }
    let begin = async move {
        let mounts = match prefix.filter(|prefix| !prefix.is_root()) {
            Some(prefix) => vec![below(&versions, &prefix).await?],
            None => {
                let mut mounts = versions.objects().view().mounts.clone();
                mounts.sort_by(|a, b| a.name.cmp(&b.name));
                mounts.into_iter().map(|mount| (Arc::new(mount), Key::new("").expect("the empty key is legal"))).collect()
            }
        };
        let of_mount = move |(mount, prefix)| of_mount(versions.clone(), mount, prefix, offset.as_ref());
        Ok::<_, Error>(stream::iter(mounts).map(of_mount).flatten())
    };
    stream::once(begin).try_flatten().boxed()
}

/// What stands directly below a path: objects and common prefixes; the mounts below the root.
pub(super) async fn folder<V: Versions>(versions: &V, prefix: Option<&Path>) -> Result<ListResult> {
    let Some(prefix) = prefix.filter(|prefix| !prefix.is_root()) else {
        let view = versions.objects().view();
        let common_prefixes = view.mounts.iter().filter_map(|mount| Path::parse(mount.name.as_str()).ok()).collect();
        return Ok(ListResult { common_prefixes, objects: Vec::new() });
    };
    if is_temporary(prefix) {
        return temporary::folder(versions, prefix).await;
    }
    let mut listed = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
    let (mount, key) = below(versions, prefix).await?;
    let mut pages = pages(versions, &mount, key, true, None);
    while let Some(page) = pages.try_next().await? {
        listed.objects.extend(page.objects.into_iter().filter_map(|info| seen(versions, &mount.name, info)));
        let folder = |key: Key| shown(&mount.name, key.as_str().trim_end_matches('/'), &key);
        listed.common_prefixes.extend(page.folders.into_iter().filter_map(folder));
    }
    Ok(listed)
}

fn is_temporary(path: &Path) -> bool {
    from_store(path).is_ok_and(|path| path.mount().is_temporary())
}

/// The mount of a path and the prefix of the keys below it.
async fn below<V: Versions>(versions: &V, prefix: &Path) -> Result<(Arc<Mount>, Key)> {
    let error = |error| to_store_error(prefix.as_ref(), error);
    let path = from_store(prefix)?;
    let mount = versions.objects().routes.mount(&path).await.map_err(error)?;
    let key = match path.key().as_str() {
        "" => Key::new(""),
        key => Key::new(format!("{key}/")),
    };
    Ok((mount, key.map_err(error)?))
}

fn of_mount<V: Versions>(versions: V, mount: Arc<Mount>, prefix: Key, offset: Option<&Path>) -> Metas {
    let below_mount = format!("{}/", mount.name);
    let after = match offset.map(Path::as_ref) {
        None => None,
        Some(offset) => match offset.strip_prefix(&below_mount) {
            Some(key) => Key::new(key).ok(),
            // The mount stands whole after the offset, or whole before it.
            None if below_mount.as_str() > offset => None,
            None => return stream::empty().boxed(),
        },
    };
    let name = mount.name.clone();
    pages(&versions, &mount, prefix, false, after)
        .map_ok(move |page| {
            let metas: Vec<_> = page.objects.into_iter().filter_map(|info| seen(&versions, &name, info).map(Ok)).collect();
            stream::iter(metas)
        })
        .try_flatten()
        .boxed()
}

fn pages<V: Versions>(
    versions: &V,
    mount: &Arc<Mount>,
    prefix: Key,
    folders: bool,
    after: Option<Key>,
) -> BoxStream<'static, Result<ListPage>> {
    let path = format!("{}/{prefix}", mount.name);
    let pages = versions.objects().reads.pages(mount.clone(), prefix, folders, after);
    pages.map_err(move |error| to_store_error(path.clone(), error)).boxed()
}

/// An object of a listing as the store shows it, at the version that counts; nothing when a path can't say its key.
fn seen<V: Versions>(versions: &V, mount: &MountName, info: ObjectInfo) -> Option<ObjectMeta> {
    let location = shown(mount, info.version.key.as_str(), &info.version.key)?;
    let path = ForebayPath::new(mount.clone(), info.version.key.clone());
    Some(meta(location, &versions.seen(&path, info)))
}

fn shown(mount: &MountName, text: &str, key: &Key) -> Option<Path> {
    let location = to_store(mount, text);
    if location.is_none() {
        debug!(%mount, ?key, "key left out of the listing: an object store path can't say it");
    }
    location
}
