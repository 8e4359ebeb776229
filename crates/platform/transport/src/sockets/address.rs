//! Where a process listens or is reached, as people write it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use forebay_types::{Error, Result};

/// Places of one service.
const PLACES_MAX: usize = 16;

/// Where a process listens or is reached, written `host:port` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `host:port`; the host is a name, an IPv4 address or an IPv6 address in brackets. Several, with commas between, are the places
    /// of one service that is at one of them at a time, as a coordinator and its standbys: who connects takes the one that answers,
    /// and nobody listens there.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The places that this stands for, in their order; one, as a rule.
    pub(crate) fn places(&self) -> Vec<Self> {
        match self {
            Self::Tcp(text) => text.split(',').map(|place| Self::Tcp(place.trim().to_string())).collect(),
            Self::Unix(_) => vec![self.clone()],
        }
    }

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

    /// `Invalid` when the text is neither `host:port`, nor several of them, nor `unix:/path`.
    fn from_str(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(Error::invalid(format!("{text:?} names no socket: write unix:/path")));
            }
            return Ok(Self::Unix(path.into()));
        }
        if text.split(',').count() > PLACES_MAX {
            return Err(Error::invalid(format!("{text:?} has more than {PLACES_MAX} places")));
        }
        if !text.split(',').all(|place| is_place(place.trim())) {
            return Err(Error::invalid(format!("{text:?} is no address: write host:port, as in 127.0.0.1:7411")));
        }
        Ok(Self::Tcp(text.to_string()))
    }
}

/// Whether it is written `host:port`.
fn is_place(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && !bare_v6 && port.parse::<u16>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_places_are_one_address() {
        let tcp = |text: &str| Address::Tcp(text.to_string());
        assert_eq!("a:7400, [::1]:7401".parse::<Address>().unwrap().places(), [tcp("a:7400"), tcp("[::1]:7401")]);
        assert_eq!("a:7400".parse::<Address>().unwrap().places(), [tcp("a:7400")]);
        for wrong in ["a:7400,", ",a:7400", "a:7400,b", "a:7400;b:7400", &"a:1,".repeat(PLACES_MAX + 1)] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
