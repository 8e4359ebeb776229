//! Which objects a dataset follows.

use std::collections::HashSet;

use forebay_client::Client;
use forebay_shard::is_like;
use forebay_shard_store::{SOURCES_MAX, too_many_sources};
use forebay_types::{Error, ErrorKind, ForebayPath, Key, ObjectInfo, Result};

use crate::open::each_below;

/// `Invalid` where a path that a dataset is to follow is not of the dataset's mount: whoever may write there may not read others, and those
/// who refresh may.
pub(crate) fn check_from(path: &ForebayPath, from: &[String]) -> Result<()> {
    for text in from {
        let followed: ForebayPath = text.parse()?;
        if followed.mount() != path.mount() {
            return Err(Error::invalid(format!(
                "{path} can't follow {followed}: a dataset follows objects of its own mount, /{}",
                path.mount()
            )));
        }
    }
    Ok(())
}

/// Whether an object is meant where nobody names it itself: engines leave `_SUCCESS` and the like beside what they write.
pub fn is_visible(key: &Key) -> bool {
    key.as_str().rsplit('/').next().is_some_and(|name| !name.is_empty() && !name.starts_with(['_', '.']))
}

/// The objects that a path with `*` or `?` in it stands for; none where it has neither, or there are none: then it stands for itself.
pub async fn objects_like(client: &Client, path: &ForebayPath) -> Result<Vec<ObjectInfo>> {
    let Some(folder) = folder_of_pattern(path)? else { return Ok(Vec::new()) };
    let mut objects = Vec::new();
    let like = |object: ObjectInfo| {
        if is_like(path.key().as_str(), object.version.key.as_str()) {
            objects.push(object);
        }
        Ok(())
    };
    each_below(client, &folder, like).await?;
    Ok(objects)
}

/// The folder that has all that a pattern stands for; none where it is no pattern.
fn folder_of_pattern(path: &ForebayPath) -> Result<Option<ForebayPath>> {
    let pattern = path.key().as_str();
    let Some(first) = pattern.find(['*', '?']) else { return Ok(None) };
    let folder = pattern[..first].rfind('/').map_or("", |end| &pattern[..=end]);
    Ok(Some(ForebayPath::new(path.mount().clone(), Key::new(folder)?)))
}

/// The objects that a dataset follows as they are now, each once: objects, those that patterns stand for, and all below folders; but none
/// of the dataset itself, nor hidden ones that are not named themselves. `Invalid` where they are more than can be followed.
pub async fn objects_followed(client: &Client, path: &ForebayPath, from: &[String]) -> Result<Vec<ObjectInfo>> {
    check_from(path, from)?;
    let mut found = Found::new(path.as_folder()?.key().as_str());
    let mut looked_at = HashSet::new();
    for text in from {
        if !looked_at.insert(text) {
            continue;
        }
        let followed: ForebayPath = text.parse()?;
        let mut seen = 0usize;
        if let Some(folder) = folder_of_pattern(&followed)? {
            let like = |object: ObjectInfo| {
                if !is_like(followed.key().as_str(), object.version.key.as_str()) {
                    return Ok(());
                }
                seen += 1;
                found.add_visible(object)
            };
            each_below(client, &folder, like).await.map_err(|error| error.context(&followed))?;
        }
        if seen == 0 {
            let any = |object: ObjectInfo| {
                seen += 1;
                found.add_visible(object)
            };
            each_below(client, &followed.as_folder()?, any).await.map_err(|error| error.context(&followed))?;
        }
        if seen == 0 && !followed.is_folder() {
            match client.open(&followed).await {
                Ok(object) => found.add(object)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.context(&followed)),
            }
        }
    }
    debug_assert_eq!(found.all.len(), found.keys.len(), "each is there once");
    Ok(found.all)
}

/// What is followed, as far as it was listed.
struct Found {
    /// What the keys of the dataset's own objects begin with.
    own: String,
    keys: HashSet<Key>,
    all: Vec<ObjectInfo>,
}

impl Found {
    fn new(own: &str) -> Self {
        debug_assert!(own.is_empty() || own.ends_with('/'), "what is below a folder begins with all of its name");
        Self { own: own.to_string(), keys: HashSet::new(), all: Vec::new() }
    }

    fn add(&mut self, object: ObjectInfo) -> Result<()> {
        let key = &object.version.key;
        if key.as_str().starts_with(&self.own) || !self.keys.insert(key.clone()) {
            return Ok(());
        }
        self.all.push(object);
        if self.all.len() > SOURCES_MAX { Err(too_many_sources(self.all.len())) } else { Ok(()) }
    }

    fn add_visible(&mut self, object: ObjectInfo) -> Result<()> {
        if is_visible(&object.version.key) { self.add(object) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{MountId, ObjectVersion, VersionTag};

    use super::*;

    fn object(key: &str) -> ObjectInfo {
        let tag = VersionTag::etag("1");
        let version = ObjectVersion { mount: MountId(1), key: Key::new(key).unwrap(), tag, size: 1 };
        ObjectInfo { version, modified_ms: 0 }
    }

    #[test]
    fn each_is_followed_once_and_not_more_than_can_be() {
        let mut found = Found::new("x.shards/");
        for key in ["in/a", "in/a", "in/_b", "in/.c", "in/", "x.shards/data/d"] {
            found.add_visible(object(key)).unwrap();
        }
        assert_eq!(found.all, [object("in/a")]);
        found.add(object("in/_b")).unwrap();
        assert_eq!(found.all.len(), 2, "it is named itself");
        (2..SOURCES_MAX).for_each(|number| found.add(object(&format!("in/{number}"))).unwrap());
        assert!(found.add(object("in/one more")).is_err());
    }
}
