//! A page of a bucket that is a mount.

use forebay_client::Client;
use forebay_types::{ForebayPath, Key, ObjectInfo};

use crate::dialect::{Page, PageRequest, S3Error, S3Result};

/// One page, in byte order of objects and folders together.
pub(super) async fn page(client: &Client, request: PageRequest<'_>) -> S3Result<Page> {
    let Ok(prefix) = Key::new(request.prefix) else { return Ok(Page::default()) };
    let path = ForebayPath::new(request.mount.name.clone(), prefix);
    if request.limit == 0 {
        return Ok(Page::default());
    }
    // What comes before the prefix, or after all keys, is no key to go on from.
    let mut after = match request.after {
        Some(after) if after.as_str() >= request.prefix => Some(cut(after)?),
        _ => None,
    };
    let mut page = Page::default();
    loop {
        let have = page.objects.len() + page.folders.len();
        let folders = request.delimiter == "/";
        // One more than is shown tells whether more follow.
        let asked = (request.limit - have + 1).min(10_000) as u32;
        let listed = client.list_page(&path, folders, after.clone(), asked).await?;
        let mut entries: Vec<Entry> = listed.objects.into_iter().map(Entry::Object).collect();
        entries.extend(listed.folders.into_iter().map(|folder| Entry::Folder(folder.as_str().into())));
        entries.sort_by(|a, b| a.key().cmp(b.key()));
        let mut jump = None;
        for entry in entries {
            let entry = match entry {
                Entry::Object(info) if !request.delimiter.is_empty() && !folders => {
                    grouped(info, request.prefix, request.delimiter)
                }
                entry => entry,
            };
            if page.folders.last().is_some_and(|folder| entry.key() == folder.as_str()) {
                continue;
            }
            // A marker within a folder is behind all of it.
            if let (Entry::Folder(folder), Some(after)) = (&entry, &after)
                && after.as_str().starts_with(folder.as_str())
            {
                jump = Some(behind(folder));
                continue;
            }
            if page.objects.len() + page.folders.len() == request.limit {
                page.next = page.last();
                return Ok(page.of(request.limit));
            }
            match entry {
                Entry::Object(info) => page.objects.push(info),
                Entry::Folder(folder) => {
                    if !folders {
                        jump = Some(behind(&folder));
                    }
                    page.folders.push(folder);
                }
            }
        }
        after = match listed.next {
            None => return Ok(page.of(request.limit)),
            Some(next) => Some(match jump {
                Some(jump) if jump.as_str() > next.as_str() => cut(jump)?,
                _ => next,
            }),
        };
    }
}

enum Entry {
    Object(ObjectInfo),
    Folder(String),
}

impl Entry {
    fn key(&self) -> &str {
        match self {
            Self::Object(info) => info.version.key.as_str(),
            Self::Folder(folder) => folder,
        }
    }
}

fn grouped(info: ObjectInfo, prefix: &str, delimiter: &str) -> Entry {
    let key = info.version.key.as_str();
    match key.get(prefix.len()..).and_then(|rest| rest.find(delimiter)) {
        Some(at) => Entry::Folder(key[..prefix.len() + at + delimiter.len()].into()),
        None => Entry::Object(info),
    }
}

/// Behind every key that starts with `folder`.
fn behind(folder: &str) -> String {
    format!("{folder}\u{10ffff}")
}

/// A place in the order of keys; one that is longer than a key is cut, where no key lies between.
fn cut(mut text: String) -> S3Result<Key> {
    while text.len() > Key::BYTES_MAX {
        text.pop();
    }
    Key::new(text).map_err(|_| S3Error::invalid_argument("The marker holds a NUL."))
}
