use std::sync::Arc;

use forebay_types::{Error, ForebayPath, MountName, Result};
use object_store::ObjectStore;
use object_store::path::Path;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::paths::pattern::{Pattern, split};

/// Scheme of the namespace's URLs inside of the engine: `forebay:///MOUNT/KEY`. One store serves all mounts, so that its
/// paths are what the client's paths are.
pub(crate) const SCHEME: &str = "forebay";

/// What stays as it is in a URL's path; everything else is escaped, so that keys come through byte for byte.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'=');

/// Where a path's bytes are: the names that the engine knows, and the stores behind them.
pub(crate) trait Namespace: Send + Sync + std::fmt::Debug {
    /// Whether `/NAME/...` is a path of the namespace.
    fn has(&self, name: &str) -> bool;

    /// The path in the namespace of a URL of shared storage that some mount covers.
    fn covers(&self, url: &str) -> Option<String>;

    /// The names, for messages.
    fn names(&self) -> Vec<String>;

    /// The store of a URL's scheme and host.
    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>>;
}

/// A table's place: a store and what of it.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// As the user wrote it.
    pub(crate) text: String,
    /// The file, or the folder with a `/` at its end.
    pub(crate) url: Url,
    /// Which files below the folder; all when not set.
    pub(crate) pattern: Option<Pattern>,
}

impl Location {
    /// Reads `/MOUNT/KEY`, `s3://BUCKET/KEY`, `file:///PATH` or a local path, absolute or relative.
    pub(crate) fn parse(text: &str, namespace: &dyn Namespace) -> Result<Self> {
        let invalid = |why: String| Error::invalid(format!("'{text}': {why}"));
        let known = text.split_once("://").and_then(|_| namespace.covers(text));
        let path = known.as_deref().unwrap_or(text);

        let (base, pattern) = split(path);
        let pattern = pattern.map(Pattern::new).transpose().map_err(|why| invalid(format!("{why} in the pattern")))?;
        let url = if let Some((scheme, rest)) = base.split_once("://") {
            with_scheme(scheme, rest).map_err(invalid)?
        } else if base.starts_with('/') && !is_local(base, namespace) {
            let below: ForebayPath = base.parse()?;
            check_key(below.key().as_str()).map_err(invalid)?;
            check_mount(below.mount(), text, namespace)?;
            to_url(SCHEME, "", &below.to_string()).map_err(invalid)?
        } else {
            local(base).map_err(invalid)?
        };
        Ok(Self { text: text.to_string(), url, pattern })
    }

    /// Reads a path to write to: no pattern, and a local one need not be there yet.
    pub(crate) fn parse_target(text: &str, namespace: &dyn Namespace) -> Result<Self> {
        let parent = std::path::Path::new(text).parent();
        let first = text.trim_start_matches('/').split('/').next().unwrap_or_default();
        if text.starts_with('/') && !namespace.has(first) && parent.is_some_and(|parent| parent.is_dir() && parent.has_root()) {
            let url = local(text).map_err(|why| Error::invalid(format!("'{text}': {why}")))?;
            return Ok(Self { text: text.to_string(), url, pattern: None });
        }
        let location = Self::parse(text, namespace)?;
        match location.pattern {
            Some(_) => Err(Error::invalid(format!("'{text}' is a pattern: name one file, or a folder with a '/' at its end"))),
            None => Ok(location),
        }
    }

    /// Whether files below a folder are meant.
    pub(crate) fn is_folder(&self) -> bool {
        self.url.path().ends_with('/')
    }

    /// The same place as a folder.
    pub(crate) fn as_folder(&self) -> Self {
        let mut folder = self.clone();
        if !folder.is_folder() {
            folder.url.set_path(&format!("{}/", self.url.path()));
        }
        folder
    }

    /// The path in the store.
    pub(crate) fn path(&self) -> Result<Path> {
        Path::from_url_path(self.url.path())
            .map_err(|error| Error::invalid(format!("'{}': {error}: such keys can be read with `forebay cat` only", self.text)))
    }
}

/// An absolute path that is no path of the namespace, but is there on this machine.
fn is_local(path: &str, namespace: &dyn Namespace) -> bool {
    let first = path[1..].split('/').next().unwrap_or_default();
    !namespace.has(first) && std::path::Path::new(path).exists()
}

fn check_mount(name: &MountName, text: &str, namespace: &dyn Namespace) -> Result<()> {
    if namespace.has(name.as_str()) {
        return Ok(());
    }
    let names = namespace.names();
    let known = match names.is_empty() {
        true => "there are no mounts".to_string(),
        false => format!("mounts are {}", names.join(", ")),
    };
    Err(Error::not_found(format!(
        "'{text}' is outside of every mount, and no local file: {known}; add one with `forebay mount add {name} URL`"
    )))
}

fn check_key(key: &str) -> Result<(), String> {
    if key.split('/').any(|part| part == "." || part == "..") {
        return Err("'.' and '..' are not resolved in keys: write the path without them".to_string());
    }
    if key.trim_end_matches('/').contains("//") {
        return Err("keys with empty parts ('//') can't be queried: read them with `forebay cat`".to_string());
    }
    Ok(())
}

fn with_scheme(scheme: &str, rest: &str) -> Result<Url, String> {
    let (host, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, path.to_string()));
    check_key(&path)?;
    match scheme {
        "file" if host.is_empty() => to_url("file", "", &format!("/{path}")),
        "file" => Err("write file:/// and the whole path".to_string()),
        "s3" | "s3a" | "gs" | "az" | SCHEME => to_url(scheme, host, &format!("/{path}")),
        _ => Err(format!("there is no store for {scheme}://: use /MOUNT/..., s3://BUCKET/..., gs://, az:// or file:///")),
    }
}

fn local(path: &str) -> Result<Url, String> {
    let path = match path {
        "" => "./",
        path => path,
    };
    let full = std::path::absolute(path).map_err(|error| error.to_string())?;
    let mut text = full.to_str().ok_or("the path is not UTF-8")?.to_string();
    if (path.ends_with('/') || full.is_dir()) && !text.ends_with('/') {
        text.push('/');
    }
    to_url("file", "", &text)
}

fn to_url(scheme: &str, host: &str, path: &str) -> Result<Url, String> {
    let path = utf8_percent_encode(path, &ESCAPED);
    Url::parse(&format!("{scheme}://{host}{path}")).map_err(|error| error.to_string())
}
