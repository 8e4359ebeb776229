//! Paths of a store and paths of Forebay.

use chrono::DateTime;
use forebay_types::{Error, ForebayPath, Key, MountName, ObjectInfo};
use futures::stream::BoxStream;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::errors::to_store_error;

/// What is listed.
pub(super) type Metas = BoxStream<'static, object_store::Result<ObjectMeta>>;

/// `MOUNT/KEY`, or `tmp/KEY`, as a path of Forebay; a mount alone has the empty key.
pub(super) fn from_store(location: &Path) -> object_store::Result<ForebayPath> {
    let text = location.as_ref();
    let (mount, key) = text.split_once('/').unwrap_or((text, ""));
    let temporary = MountName::temporary();
    let mount = if mount == temporary.as_str() { Ok(temporary) } else { mount.parse::<MountName>() };
    let path = mount.and_then(|mount| Ok(ForebayPath::new(mount, Key::new(key)?)));
    path.map_err(|error| match text {
        "" => to_store_error(text, Error::invalid("the root is no object: write MOUNT/KEY")),
        // A name that no mount can have is that of a mount that is not there.
        _ => to_store_error(text, Error::not_found(error.message().to_string())),
    })
}

/// The path of a key, if such a path can say it byte for byte.
pub(super) fn to_store(mount: &MountName, key: &str) -> Option<Path> {
    let text = format!("{mount}/{key}");
    Path::parse(&text).ok().filter(|path| path.as_ref() == text)
}

/// What `object_store` wants to know of an object.
pub(super) fn meta(location: Path, info: &ObjectInfo) -> ObjectMeta {
    ObjectMeta {
        location,
        last_modified: DateTime::from_timestamp_millis(info.modified_ms).unwrap_or_default(),
        size: info.version.size,
        e_tag: Some(info.version.tag.as_str().to_string()),
        version: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_or_are_left_out() {
        let mount: MountName = "lake".parse().unwrap();
        for key in ["a", "a/b.parquet", "year=2024/x y%20z é", "100%"] {
            let path = to_store(&mount, key).unwrap();
            let back = from_store(&path).unwrap();
            assert_eq!((back.mount(), back.key().as_str()), (&mount, key));
        }
        let node = from_store(&to_store(&MountName::temporary(), "job/part").unwrap()).unwrap();
        assert!(node.mount().is_temporary() && node.to_string() == "/tmp/job/part", "{node}");
        for key in ["a//b", "a/", "/a", "a/../b", "./a", "tab\there"] {
            assert_eq!(to_store(&mount, key), None, "{key:?}");
        }
    }
}
