//! Pages of a bucket in byte order, folders and all, from the keys in memory.

use std::ops::Bound;
use std::sync::Arc;

use super::{Object, Objects};

/// What of a bucket to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageRequest {
    pub(crate) prefix: String,
    /// Keys that share what comes before the delimiter are shown as one.
    pub(crate) delimiter: Option<String>,
    /// Only keys behind this one.
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// A page of a listing, in byte order.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<(String, Arc<Object>)>,
    pub(crate) folders: Vec<String>,
    /// What the next page comes `after`; none at the end.
    pub(crate) next: Option<String>,
}

/// Behind every key that starts with `folder`.
fn behind(folder: &str) -> String {
    format!("{folder}\u{10ffff}")
}

pub(crate) fn page(objects: &Objects, request: &PageRequest) -> Page {
    let mut page = Page::default();
    let mut after = request.after.clone();
    loop {
        let from = match &after {
            Some(after) if *after >= request.prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(request.prefix.as_str()),
        };
        // Walks on from here until a folder asks to jump behind it.
        let mut jump = None;
        for (key, object) in objects.range::<str, _>((from, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(&request.prefix) else { break };
            if page.objects.len() + page.folders.len() >= request.limit {
                page.next = after;
                return page;
            }
            let delimiter = request.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
            if let Some((delimiter, at)) = delimiter.and_then(|delimiter| Some((delimiter, rest.find(delimiter)?))) {
                let folder = &key[..request.prefix.len() + at + delimiter.len()];
                page.folders.push(folder.into());
                jump = Some(behind(folder));
                break;
            }
            page.objects.push((key.clone(), Arc::clone(object)));
            after = Some(key.clone());
        }
        let Some(behind) = jump else { return page };
        after = Some(behind);
    }
}
