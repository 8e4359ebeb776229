//! Where a process listens or is reached, as people write it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use forebay_types::{Error, Result};

/// Where a process listens or is reached, written `host:port` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `host:port`; the host is a name, an IPv4 address or an IPv6 address in brackets.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The host of a TCP address, without brackets.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp(text) => text.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']'])),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(text) => f.write_str(text),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    /// `Invalid` when the text is neither `host:port` nor `unix:/path`.
    fn from_str(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(Error::invalid(format!("{text:?} names no socket: write unix:/path")));
            }
            return Ok(Self::Unix(path.into()));
        }
        let legal = text.rsplit_once(':').is_some_and(|(host, port)| {
            let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
            !host.is_empty() && !bare_v6 && port.parse::<u16>().is_ok()
        });
        if !legal {
            return Err(Error::invalid(format!("{text:?} is no address: write host:port, as in 127.0.0.1:7411")));
        }
        Ok(Self::Tcp(text.to_string()))
    }
}
