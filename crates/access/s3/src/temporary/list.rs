//! Listings of temporary data, in the order of keys.

use forebay_client::NodeItem;
use forebay_types::{Key, MountId, ObjectInfo, ObjectVersion, VersionTag};

use crate::context::Context;
use crate::dialect::{Page, PageRequest, S3Error, S3Result};

/// One page of a listing, in byte order of keys: files and values, and with the delimiter `/` containers as folders.
pub(crate) async fn page(context: &Context, request: PageRequest<'_>) -> S3Result<Page> {
    let flat = match request.delimiter {
        "" => true,
        "/" => false,
        _ => return Err(S3Error::not_implemented("another delimiter than / for temporary data")),
    };
    let mut page = Page::default();
    if request.limit == 0 {
        return Ok(page);
    }
    let mut walk = context.client.nodes().walk(flat, request.prefix, request.after.as_deref()).await?;
    while let Some(item) = walk.next().await? {
        if page.objects.len() + page.folders.len() == request.limit {
            page.next = page.last();
            break;
        }
        match item {
            NodeItem::Folder(key) => page.folders.push(key),
            NodeItem::Object(key, size) => {
                // Longer ones than keys can be are not reached through S3.
                let Ok(key) = Key::new(key) else { continue };
                let version = ObjectVersion { mount: MountId::TEMPORARY, key, tag: VersionTag::etag(""), size };
                page.objects.push(ObjectInfo { version, modified_ms: context.begun_ms });
            }
        }
    }
    Ok(page.of(request.limit))
}
