//! Pages of S3's listings as keys below the mount, decoded to the bytes that they are.

use chrono::DateTime;
use forebay_types::{Error, Key, ObjectInfo, Result};
use http::Method;
use percent_encoding::percent_decode_str;

use super::S3;
use super::answer::tag;
use super::call::{Call, Kind};
use super::xml::{Listed, Page};
use crate::request::{ListPage, behind};

/// Most keys that S3 lists at once.
const PAGE_MAX: usize = 1000;

impl S3 {
    pub(super) async fn list_keys(&self, prefix: &Key, folders: bool, after: Option<&Key>, limit: usize) -> Result<ListPage> {
        let mut listing = ListPage::default();
        let mut token = None;
        loop {
            let have = listing.objects.len() + listing.folders.len();
            if have >= limit {
                listing.next = last(&listing);
                return Ok(listing);
            }
            let mut call = Call::bucket(Method::GET, Kind::List, prefix.as_str());
            call.query = vec![
                ("list-type", "2".into()),
                ("encoding-type", "url".into()),
                ("max-keys", (limit - have).min(PAGE_MAX).to_string()),
                ("prefix", self.bucket.full_key(prefix.as_str())),
            ];
            if folders {
                call.query.push(("delimiter", "/".into()));
            }
            match (&token, after) {
                (Some(token), _) => call.query.push(("continuation-token", String::clone(token))),
                (None, Some(after)) => call.query.push(("start-after", self.bucket.full_key(&behind(prefix, folders, after)))),
                (None, None) => {}
            }
            let text = self.call_text(&call).await?;
            let page = Page::parse(&text).map_err(|error| error.context(self.path(prefix.as_str())))?;
            self.append(&mut listing, &page, after)?;
            token = match (page.truncated, page.token) {
                (false, _) => return Ok(listing),
                // One that goes on where it was would never end.
                (true, Some(next)) if token.as_ref() != Some(&next) => Some(next),
                (true, _) => {
                    return Err(Error::internal(format!(
                        "{}: the server's listing goes on, but doesn't say where",
                        self.path(prefix.as_str())
                    )));
                }
            };
        }
    }

    fn append(&self, listing: &mut ListPage, page: &Page, after: Option<&Key>) -> Result<()> {
        for listed in &page.objects {
            let Some(key) = self.key_of(&listed.key, page.encoded) else { continue };
            if after.is_none_or(|after| key > *after) && !key.as_str().is_empty() {
                listing.objects.push(self.listed(key, listed)?);
            }
        }
        for folder in &page.folders {
            let Some(folder) = self.key_of(folder, page.encoded) else { continue };
            if after.is_none_or(|after| folder > *after) {
                listing.folders.push(folder);
            }
        }
        Ok(())
    }

    /// The key below the mount; none for what no key of ours can be, which is left out, as nobody could read it.
    fn key_of(&self, text: &str, encoded: bool) -> Option<Key> {
        let decoded = if encoded { decode(text) } else { Some(text.into()) };
        let key = decoded.as_deref().and_then(|full| full.strip_prefix(&self.bucket.prefix)).and_then(|key| Key::new(key).ok());
        if key.is_none() {
            tracing::warn!(key = text, "listed key is left out: it is not UTF-8, or holds a NUL, or is not what was asked for");
        }
        key
    }

    fn listed(&self, key: Key, listed: &Listed) -> Result<ObjectInfo> {
        let modified = DateTime::parse_from_rfc3339(&listed.modified).ok().map(|time| time.timestamp_millis());
        let path = || self.path(key.as_str());
        let tag = tag(listed.etag.as_deref(), listed.size, modified)
            .ok_or_else(|| Error::internal(format!("{}: listed without ETag and time", path())))?;
        Ok(self.info(&key, tag, listed.size, modified.unwrap_or_default()))
    }
}

fn last(listing: &ListPage) -> Option<Key> {
    let object = listing.objects.last().map(|object| &object.version.key);
    object.max(listing.folders.last()).cloned()
}

/// As in a form: `+` is a space. None when it isn't UTF-8.
fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_as_s3_encodes_them() {
        assert_eq!(decode("a%2F+b%2B%25").as_deref(), Some("a/ b+%"));
        assert_eq!(decode("a/%20b").as_deref(), Some("a/ b"));
        assert_eq!(decode("%FF"), None);
    }
}
