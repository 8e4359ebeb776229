//! Reads a path or URL of a statement as a place of one store, keeping keys byte for byte, or says what is wrong with it.

use forebay_types::{Error, ForebayPath, MountName, Result};
use object_store::path::Path;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::names::{Namespace, SCHEME, is_temporary, store_name};
use super::pattern::{Pattern, split};
use super::place::scheme_of;
use crate::reach::LocalFiles;

/// What stays as it is in a URL's path; everything else is escaped, so that keys come through byte for byte.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'=');

/// A table's place: a store and what of it.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// As the user wrote it.
    pub(crate) text: String,
    /// The file, or the folder with a `/` at its end; its path begins with [`store_name`] where it is below no mount.
    pub(crate) url: Url,
    /// Which files below the folder; all when not set.
    pub(crate) pattern: Option<Pattern>,
}

impl Location {
    /// Reads `/MOUNT/KEY`, `/tmp/NODE`, `s3://BUCKET/KEY`, `file:///PATH` or a local path, absolute or relative.
    pub(crate) fn parse(text: &str, namespace: &dyn Namespace) -> Result<Self> {
        let invalid = |why: String| Error::invalid(format!("'{text}': {why}"));
        let known = text.split_once("://").and_then(|_| namespace.covers(text));
        let path = known.as_deref().unwrap_or(text);

        let (base, pattern) = split(path);
        let pattern = pattern.map(Pattern::new).transpose().map_err(|why| invalid(format!("{why} in the pattern")))?;
        let url = if let Some(path) = local_url(base) {
            let path = path.map_err(invalid)?;
            return Self::of_local(text, path, pattern, namespace);
        } else if let Some((scheme, rest)) = base.split_once("://") {
            with_scheme(scheme, rest).map_err(invalid)?
        } else if base.starts_with('/') && !is_local(base, namespace) {
            is_mount(base, text, namespace)?;
            let below = ForebayPath::parse_any(base)?;
            check_key(below.key().as_str()).map_err(invalid)?;
            to_url(SCHEME, "", &below.to_string()).map_err(invalid)?
        } else {
            return Self::of_local(text, base, pattern, namespace);
        };
        Ok(Self { text: text.to_string(), url, pattern })
    }

    /// Reads a path to write to: no pattern, and a local one need not be there yet.
    pub(crate) fn parse_target(text: &str, namespace: &dyn Namespace) -> Result<Self> {
        let path = std::path::Path::new(text);
        let into_folder = |parent: &std::path::Path| parent.has_root() && parent.is_dir();
        let open = text.starts_with('/') && !namespace.has(first_of(text)) && namespace.local_files().has(path);
        if open && path.parent().is_some_and(into_folder) {
            return Self::of_local(text, text, None, namespace);
        }
        let location = Self::parse(text, namespace)?;
        match location.pattern {
            Some(_) => Err(Error::invalid(format!("'{text}' is a pattern: name one file, or a folder with a '/' at its end"))),
            None => Ok(location),
        }
    }

    /// A file or folder of this machine. Where only some are open its links are resolved, so that what a mount covers goes through
    /// that mount, whatever way leads there.
    fn of_local(text: &str, path: &str, pattern: Option<Pattern>, namespace: &dyn Namespace) -> Result<Self> {
        let invalid = |why: String| Error::invalid(format!("'{text}': {why}"));
        let url = match namespace.local_files() {
            LocalFiles::All => local(path).map_err(invalid)?,
            some => {
                let real = some.resolve(std::path::Path::new(path))?;
                let real = real.to_str().ok_or_else(|| invalid("the path is not UTF-8".to_string()))?;
                let slash = if path.ends_with('/') { "/" } else { "" };
                match namespace.covers(&format!("file://{real}{slash}")) {
                    Some(path) => to_url(SCHEME, "", &path).map_err(invalid)?,
                    None => local(&format!("{real}{slash}")).map_err(invalid)?,
                }
            }
        };
        Ok(Self { text: text.to_string(), url, pattern })
    }

    /// Whether temporary data is meant.
    pub(crate) fn is_temporary(&self) -> bool {
        self.url.scheme() == SCHEME && self.path().is_ok_and(|path| is_temporary(&path))
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

    /// The object below a mount whose key is what the pattern says, sign by sign: keys may have such signs in them.
    pub(crate) fn literal(&self) -> Option<Self> {
        let text = self.pattern.as_ref()?.text();
        if self.url.scheme() != SCHEME || check_key(text).is_err() {
            return None;
        }
        let mut literal = Self { pattern: None, ..self.clone() };
        literal.url.set_path(&format!("{}{}", self.url.path(), utf8_percent_encode(text, &ESCAPED)));
        Some(literal)
    }

    /// The path in the store.
    pub(crate) fn path(&self) -> Result<Path> {
        Path::from_url_path(self.url.path())
            .map_err(|error| Error::invalid(format!("'{}': {error}: such keys can be read with `forebay cat` only", self.text)))
    }
}

/// An absolute path that is no path of the namespace, but is there on this machine.
fn is_local(path: &str, namespace: &dyn Namespace) -> bool {
    let local = std::path::Path::new(path);
    !namespace.has(first_of(path)) && namespace.local_files().has(local) && local.exists()
}

fn first_of(path: &str) -> &str {
    path.trim_start_matches('/').split('/').next().unwrap_or_default()
}

/// Whether a path is below a mount. What is not says nothing of the files of this machine.
fn is_mount(path: &str, text: &str, namespace: &dyn Namespace) -> Result<()> {
    let name = first_of(path);
    if namespace.has(name) {
        return Ok(());
    }
    let names = namespace.names();
    let known = if names.is_empty() { "there are no mounts".to_string() } else { format!("mounts are {}", names.join(", ")) };
    let local = match namespace.local_files() {
        LocalFiles::All => "no local file",
        LocalFiles::Below(_) => "files of this machine are not open to SQL here (`file-roots`)",
    };
    let name = if name.parse::<MountName>().is_ok() { name } else { "NAME" };
    Err(Error::not_found(format!(
        "'{text}' is outside of every mount, and {local}: {known}; add one with `forebay mount add {name} URL`"
    )))
}

fn check_key(key: &str) -> Result<(), String> {
    if key.split('/').any(|part| part == "." || part == "..") {
        return Err("'.' and '..' are not resolved in keys: write the path without them".to_string());
    }
    if key.starts_with('/') || key.trim_end_matches('/').contains("//") {
        return Err("keys with empty parts ('//') can't be queried: read them with `forebay cat`".to_string());
    }
    Ok(())
}

/// The path of a `file:` URL; none for what is something else.
fn local_url(text: &str) -> Option<Result<&str, String>> {
    let (scheme, path) = text.split_once("://")?;
    scheme.eq_ignore_ascii_case("file").then(|| match path.starts_with('/') {
        true => check_key(path.trim_start_matches('/')).map(|()| path),
        false => Err("write file:/// and the whole path".to_string()),
    })
}

fn with_scheme(scheme: &str, rest: &str) -> Result<Url, String> {
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    check_key(path)?;
    // A bucket has one spelling: what a port, a user or an escape says of it would be another name for the same.
    if !host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')) {
        return Err(format!("{host:?} is no name of a bucket"));
    }
    let scheme = scheme_of(scheme);
    match scheme.as_str() {
        "s3" | "gs" | "az" if !host.is_empty() => to_url(&scheme, host, &format!("/{path}")),
        "s3" | "gs" | "az" => Err(format!("name a bucket, as in {scheme}://BUCKET/KEY")),
        SCHEME if host.is_empty() => to_url(SCHEME, "", &format!("/{path}")),
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
    let below = if scheme == SCHEME { String::new() } else { format!("/{}", store_name(scheme, host)) };
    let path = format!("{below}{path}");
    let path = utf8_percent_encode(&path, &ESCAPED);
    Url::parse(&format!("{scheme}://{host}{path}")).map_err(|error| error.to_string())
}
