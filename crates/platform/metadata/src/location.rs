//! Where the database is.

use std::path::PathBuf;

use forebay_types::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::dialect::Dialect;

/// What may stand in the path of a URL as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// Where a metadata database is. Not `Debug`: the URL may hold a password.
#[derive(Clone)]
pub(crate) enum Location {
    /// A file.
    Sqlite(PathBuf),
    /// A server and database, as the user wrote it.
    Postgres(Url),
}

impl Location {
    /// Reads `sqlite:PATH`, `postgres://..` or `postgresql://..`. Errors don't repeat the text, which may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" {
                return Err(Error::invalid(
                    "the metadata URL names no file: write sqlite:PATH, as in sqlite:./forebay-data/metadata.db",
                ));
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let url = text.parse::<Url>().map_err(|error| {
                Error::invalid(format!(
                    "the metadata URL can't be read: {error}: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters as %XX"
                ))
            })?;
            return Ok(Self::Postgres(url));
        }
        Err(Error::invalid(
            "the metadata URL is of no known kind: write sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE for several machines",
        ))
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// The URL to connect to, with the password.
    pub(crate) fn connect_url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}?mode=rw", utf8_percent_encode(&path.to_string_lossy(), PATH)),
            Self::Postgres(url) => url.to_string(),
        }
    }

    /// For people: without the password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(url) => {
                let parameter = |wanted: &[&str]| {
                    url.query_pairs().find(|(name, _)| wanted.contains(&name.as_ref())).map(|(_, value)| value.into_owned())
                };
                let host = parameter(&["host", "hostaddr"])
                    .unwrap_or_else(|| url.host_str().filter(|host| !host.is_empty()).unwrap_or("localhost").to_string());
                let port = parameter(&["port"]).unwrap_or_else(|| url.port().unwrap_or(5432).to_string());
                let user = if url.username().is_empty() { String::new() } else { format!("{}@", url.username()) };
                format!("postgres://{user}{host}:{port}{}", url.path())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://bay:s3cret@db.example:6000/meta",
            "postgresql://bay@db.example:6000/meta?password=s3cret&sslmode=require",
            "postgres://bay@localhost/meta?host=db.example&port=6000&password=s3cret",
        ] {
            let shown = Location::parse(url).unwrap().shown();
            assert!(shown.contains("bay@db.example:6000") && shown.ends_with("/meta") && !shown.contains("s3cret"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for url in ["", "sqlite:", "sqlite::memory:", "mysql://bay:s3cret@db", "postgres://bay:s3cret@db:port/meta", "/some/path"]
        {
            let error = Location::parse(url).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), forebay_types::ErrorKind::Invalid);
            assert!(!error.message().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_file_of_any_name_is_connected_to_as_it_is() {
        let location = Location::parse("sqlite:///a b/50%?#.db").unwrap();
        assert_eq!(location.connect_url(), "sqlite:///a%20b/50%25%3F%23.db?mode=rw");
        assert_eq!(location.shown(), "/a b/50%?#.db");
    }
}
