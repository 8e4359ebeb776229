//! Whether a path of a command is an object or a folder, with all objects that it stands for.

use forebay_client::Client;
use forebay_types::{Error, ErrorKind, ForebayPath, Key, ObjectInfo, ObjectVersion, Result};
use futures::TryStreamExt;

/// What a path stands for.
pub(crate) enum Tree {
    /// One object.
    Object(ObjectInfo),
    /// Everything below a prefix that ends with `/`, or the whole mount.
    Folder(ForebayPath, Vec<ObjectInfo>),
}

impl Tree {
    /// Finds out what `path` stands for: a folder when something is below it, else an object. `NotFound` when it is
    /// neither; a mount with nothing in it is a folder.
    pub(crate) async fn of(client: &Client, path: &ForebayPath) -> Result<Self> {
        Self::of_at_most(client, path, usize::MAX).await
    }

    /// The same of at most so many objects; `Invalid` where more are below the path, of which no more are kept.
    pub(crate) async fn of_at_most(client: &Client, path: &ForebayPath, most: usize) -> Result<Self> {
        let folder = path.as_folder()?;
        let (mut pages, mut objects) = (client.list(&folder, false).await?, Vec::new());
        while let Some(page) = pages.try_next().await? {
            objects.extend(page.objects);
            check_count(&folder, objects.len(), most)?;
        }
        if !objects.is_empty() || path.key().as_str().is_empty() {
            return Ok(Self::Folder(folder, objects));
        }
        if path.is_folder() {
            return Err(nothing(path));
        }
        client.open(path).await.map(Self::Object).map_err(|error| missing(client, path, error))
    }

    pub(crate) fn objects(&self) -> &[ObjectInfo] {
        match self {
            Self::Object(info) => std::slice::from_ref(info),
            Self::Folder(_, objects) => objects,
        }
    }

    pub(crate) fn versions(&self) -> Vec<ObjectVersion> {
        self.objects().iter().map(|info| info.version.clone()).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.objects().iter().fold(0u64, |bytes, info| bytes.saturating_add(info.version.size))
    }

    /// The path with what it stands for: a folder's ends with `/`.
    pub(crate) fn path(&self, asked: &ForebayPath) -> ForebayPath {
        match self {
            Self::Object(_) => asked.clone(),
            Self::Folder(path, _) => path.clone(),
        }
    }
}

fn check_count(folder: &ForebayPath, objects: usize, most: usize) -> Result<()> {
    match objects <= most {
        true => Ok(()),
        false => Err(Error::invalid(format!("{folder}: more than {most} objects are below it: name its folders one by one"))),
    }
}

/// The path of a key of the mount that `path` is in.
pub(crate) fn beside(path: &ForebayPath, key: &Key) -> ForebayPath {
    ForebayPath::new(path.mount().clone(), key.clone())
}

pub(crate) fn nothing(path: &ForebayPath) -> Error {
    let key = path.key().as_str();
    if let Some(star) = key.find('*') {
        let folder = key[..star].rfind('/').map_or("", |end| &key[..=end]);
        return Error::not_found(format!(
            "{path}: there is no object of that name: patterns are for SQL, and here a folder stands for all that is below it, as /{}/{folder} does",
            path.mount()
        ));
    }
    Error::not_found(format!(
        "{path}: there is no such object and nothing is below it; if it was just written by others, `forebay refresh {path}` looks again"
    ))
}

/// What to say where the object at `path` was not opened: that it is a folder, in the words of `folder`. That is looked for only
/// where storage has answered: one that is away would be waited for once more.
pub(crate) async fn unopened<E: From<Error>>(
    client: &Client,
    path: &ForebayPath,
    error: Error,
    folder: impl FnOnce(ForebayPath, usize) -> E,
) -> E {
    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid)
        && let Ok(Tree::Folder(path, objects)) = Tree::of(client, path).await
    {
        return folder(path, objects.len());
    }
    missing(client, path, error).into()
}

/// As [`missing`], where one object was asked for: a folder is said to be one, whatever is in it.
pub(crate) async fn no_object(client: &Client, path: &ForebayPath, error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound
        && let Ok(folder) = path.as_folder()
        && let Ok(mut pages) = client.list(&folder, true).await
        && let Ok(Some(page)) = pages.try_next().await
        && !(page.objects.is_empty() && page.folders.is_empty())
    {
        return Error::invalid(format!("{folder} is a folder: name an object in it, `forebay ls {folder}` lists them"));
    }
    missing(client, path, error)
}

/// The error for a path that is not there: a mount that is missing has its own message, and so has what else went wrong.
pub(crate) fn missing(client: &Client, path: &ForebayPath, error: Error) -> Error {
    told(path, client.view().mounts.iter().any(|mount| mount.name == *path.mount()), error)
}

fn told(path: &ForebayPath, is_mount_known: bool, error: Error) -> Error {
    if is_mount_known && error.kind() == ErrorKind::NotFound { nothing(path) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_too_many_objects_is_refused_with_its_name() {
        let folder: ForebayPath = "/lake/x/".parse().expect("a path");
        assert!(check_count(&folder, 7, 7).is_ok() && check_count(&folder, usize::MAX, usize::MAX).is_ok());
        let error = check_count(&folder, 8, 7).expect_err("one too many");
        assert!(error.kind() == ErrorKind::Invalid && error.message().starts_with("/lake/x/: more than 7 objects"), "{error}");
    }

    #[test]
    fn a_pattern_is_said_to_be_none() {
        for (path, folder) in [("/lake/*.csv", "as /lake/ does"), ("/lake/a/b*/c.csv", "as /lake/a/ does")] {
            let error = nothing(&path.parse().expect("a path"));
            assert!(error.message().contains("patterns are for SQL") && error.message().ends_with(folder), "{error}");
        }
    }

    #[test]
    fn what_can_not_be_looked_at_is_not_said_to_be_missing() {
        let path: ForebayPath = "/lake/x.csv".parse().expect("a path");
        let message = |is_mount_known, error| told(&path, is_mount_known, error).message().to_string();
        assert!(message(true, Error::not_found("no key")).contains("forebay refresh /lake/x.csv"));
        assert_eq!(message(false, Error::not_found("no mount")), "no mount");
        assert_eq!(message(true, Error::denied("token a.1 may not read")), "token a.1 may not read");
        assert_eq!(told(&path, true, Error::retry("all workers are away")).kind(), ErrorKind::Retry);
    }
}
