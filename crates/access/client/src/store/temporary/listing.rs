//! Listings of temporary data: each object at the version that it has when it is listed.

use forebay_nodes::{NodeError, NodeResult};
use forebay_types::{ErrorKind, ForebayPath, Key, MountName};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ListResult, ObjectMeta, Result};

use super::told;
use crate::nodes::{NodeItem, NodeWalk, Nodes};
use crate::store::errors::to_store_error;
use crate::store::paths::{Metas, from_store, meta, to_store};
use crate::store::versions::Versions;

/// Objects that are looked at at once.
const LOOKS_AT_ONCE: usize = 64;
/// Where jobs keep what passes between their stages: in no listing from above.
const SHUFFLE: &str = "shuffle";

/// All objects below a path, behind an offset.
pub(in crate::store) fn list<V: Versions>(versions: V, prefix: Path, offset: Option<Path>) -> Metas {
    let begin = async move {
        let below = from_store(&prefix)?;
        let (is_behind, after) = behind(offset.as_ref());
        if !is_behind {
            let nothing: Metas = stream::empty().boxed();
            return Ok(nothing);
        }
        let nodes = versions.objects().temporary.nodes.clone();
        let items = walk(nodes, below.clone(), true, after);
        let items = items.map_err(move |error| to_store_error(prefix.as_ref(), told(&below, error)));
        Ok::<_, Error>(looked_at(versions, items))
    };
    stream::once(begin).try_flatten().boxed()
}

/// Whether anything of temporary data stands behind an offset, and behind which key that is.
fn behind(offset: Option<&Path>) -> (bool, Option<String>) {
    let Some(offset) = offset else { return (true, None) };
    match from_store(offset) {
        Ok(after) if after.mount().is_temporary() => (true, Some(after.key().to_string())),
        _ => {
            let text: &str = offset.as_ref();
            (text < MountName::temporary().as_str(), None)
        }
    }
}

/// What stands directly below a path: objects and containers.
pub(in crate::store) async fn folder<V: Versions>(versions: &V, prefix: &Path) -> Result<ListResult> {
    let below = from_store(prefix)?;
    let nodes = versions.objects().temporary.nodes.clone();
    let items = walk(nodes, below.clone(), false, None).try_collect::<Vec<NodeItem>>().await;
    let items = items.map_err(|error| to_store_error(prefix.as_ref(), told(&below, error)))?;
    let folder = |item: &NodeItem| match item {
        NodeItem::Folder(key) => to_store(below.mount(), key.trim_end_matches('/')),
        NodeItem::Object(..) => None,
    };
    let common_prefixes = items.iter().filter_map(folder).collect();
    let objects = looked_at(versions.clone(), stream::iter(items).map(Ok)).try_collect().await?;
    Ok(ListResult { common_prefixes, objects })
}

/// A walk through what is below a path.
fn walk(
    nodes: Nodes,
    below: ForebayPath,
    flat: bool,
    after: Option<String>,
) -> impl Stream<Item = NodeResult<NodeItem>> + Send + 'static {
    let begin = async move {
        let prefix = match below.key().as_str() {
            "" => String::new(),
            key => format!("{key}/"),
        };
        let walk = nodes.walk(flat, &prefix, after.as_deref()).await?;
        let walk = if prefix.is_empty() { walk.passing_over(SHUFFLE) } else { walk };
        let items = stream::try_unfold(walk, |mut walk: NodeWalk| async move {
            let item = walk.next().await?;
            Ok::<_, NodeError>(item.map(|item| (item, walk)))
        });
        Ok::<_, NodeError>(items)
    };
    stream::once(begin).try_flatten()
}

/// The objects of a walk, each as it is when it is looked at; those that are gone by then are left out.
fn looked_at<V: Versions>(versions: V, items: impl Stream<Item = Result<NodeItem>> + Send + 'static) -> Metas {
    let looked = items.map_ok(move |item| look(versions.clone(), item)).try_buffered(LOOKS_AT_ONCE);
    looked.try_filter_map(|meta| async move { Ok(meta) }).boxed()
}

async fn look<V: Versions>(versions: V, item: NodeItem) -> Result<Option<ObjectMeta>> {
    let (NodeItem::Object(key, _), mount) = (item, MountName::temporary()) else { return Ok(None) };
    // A longer one than keys can be, or one that no path of a store says.
    let (Ok(known), Some(location)) = (Key::new(key.as_str()), to_store(&mount, &key)) else { return Ok(None) };
    let path = ForebayPath::new(mount, known);
    let info = match versions.pinned(&path) {
        Some(info) => info,
        None => match versions.objects().temporary.open(&path).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            info => versions.seen(&path, info.map_err(|error| to_store_error(location.as_ref(), error))?),
        },
    };
    Ok(Some(meta(location, &info)))
}
