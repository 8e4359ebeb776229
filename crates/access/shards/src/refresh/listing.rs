//! Which objects a dataset follows.

use forebay_client::Client;
use forebay_shard::is_like;
use forebay_types::{Error, ErrorKind, ForebayPath, Key, ObjectInfo, Result};

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

/// The objects that a path with `*` or `?` in it stands for; none where it has neither, or there are none: then it stands for itself.
pub async fn objects_like(client: &Client, path: &ForebayPath) -> Result<Vec<ObjectInfo>> {
    let pattern = path.key().as_str();
    let Some(first) = pattern.find(['*', '?']) else { return Ok(Vec::new()) };
    let folder = pattern[..first].rfind('/').map_or("", |end| &pattern[..=end]);
    let folder = ForebayPath::new(path.mount().clone(), Key::new(folder)?);
    let mut objects = client.list_all(&folder).await?;
    objects.retain(|object| is_like(pattern, object.version.key.as_str()));
    Ok(objects)
}

/// The objects that a dataset follows as they are now, each once: objects, those that patterns stand for, and all below folders; but none
/// that is hidden or of the dataset itself.
pub(super) async fn listed(client: &Client, path: &ForebayPath, from: &[String]) -> Result<Vec<ObjectInfo>> {
    check_from(path, from)?;
    let own = path.as_folder()?;
    let mut all: Vec<ObjectInfo> = Vec::new();
    for text in from {
        let followed: ForebayPath = text.parse()?;
        let mut objects = objects_like(client, &followed).await.map_err(|error| error.context(&followed))?;
        if objects.is_empty() {
            objects = client.list_all(&followed.as_folder()?).await.map_err(|error| error.context(&followed))?;
        }
        if objects.is_empty() && !followed.is_folder() {
            match client.open(&followed).await {
                Ok(object) => objects.push(object),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.context(&followed)),
            }
        }
        objects.retain(|object| {
            let key = object.version.key.as_str();
            let name = key.rsplit('/').next().unwrap_or_default();
            let is_hidden = name.is_empty() || name.starts_with(['_', '.']);
            !is_hidden && !key.starts_with(own.key().as_str()) && all.iter().all(|other| other.version.key != object.version.key)
        });
        all.extend(objects);
    }
    Ok(all)
}
