//! Mounts: their names and ids, the rule that says when an open asks shared storage, and all of their options.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::as_text;
use crate::{BitRate, ByteSize, Error, Result, format_duration, parse_duration};

/// A mount's identity: given once by the metadata database and never used again, so that what was cached of a removed
/// mount can't be taken for a new one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MountId(pub u64);

impl MountId {
    /// Stands for the temporary namespace where something has to: no mount has it.
    pub const TEMPORARY: Self = Self(0);
}

/// A mount's name: a legal S3 bucket name (3 to 63 of `a-z 0-9 - .`, a letter or digit at both ends), so that it can
/// be a bucket of the S3 gateway. `tmp` is the temporary namespace's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MountName(Arc<str>);

impl MountName {
    const TEMPORARY: &str = "tmp";

    /// The name under which ways in show the temporary namespace; no mount has it, and no text gives it.
    pub fn temporary() -> Self {
        Self(Self::TEMPORARY.into())
    }

    /// Whether this stands for the temporary namespace.
    pub fn is_temporary(&self) -> bool {
        self.as_str() == Self::TEMPORARY
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MountName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let legal = (3..=63).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
            && edge(name.chars().next())
            && edge(name.chars().next_back())
            && !name.contains("..")
            && name.parse::<std::net::Ipv4Addr>().is_err();
        if !legal {
            return Err(Error::invalid(format!(
                "{name:?} is not a mount name: use 3 to 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
            )));
        }
        if name == Self::TEMPORARY {
            return Err(Error::invalid("the name \"tmp\" is reserved for temporary data: choose another".to_string()));
        }
        Ok(Self(name.into()))
    }
}

as_text!(MountName);

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When an open asks shared storage whether the version that is known is still the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Validate {
    /// At every open.
    Always,
    /// When the last answer is older than this.
    Ttl(Duration),
    /// Never: objects of this mount don't change.
    Immutable,
}

impl Default for Validate {
    fn default() -> Self {
        Self::Ttl(Duration::from_secs(60))
    }
}

impl Validate {
    /// Whether an answer of this age still stands.
    pub fn accepts(self, age: Duration) -> bool {
        match self {
            Self::Always => false,
            Self::Ttl(ttl) => age < ttl,
            Self::Immutable => true,
        }
    }
}

impl FromStr for Validate {
    type Err = Error;

    /// `always`, `immutable` or `ttl:60s`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "always" => Ok(Self::Always),
            "immutable" => Ok(Self::Immutable),
            _ => match text.strip_prefix("ttl:") {
                Some(ttl) => Ok(Self::Ttl(parse_duration(ttl)?)),
                None => Err(Error::invalid(format!("{text:?} is no rule: write always, immutable or ttl:60s"))),
            },
        }
    }
}

as_text!(Validate);

impl fmt::Display for Validate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Ttl(ttl) => write!(f, "ttl:{}", format_duration(*ttl)),
            Self::Immutable => f.write_str("immutable"),
        }
    }
}

/// In which form the tiers keep files that are read again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HotForm {
    /// Popular columns of Parquet, CSV and JSON files are kept decoded, beside their bytes, where that pays.
    Table,
    /// As shared storage has them, and no other.
    #[default]
    Raw,
}

crate::named! {
    HotForm, Error: Table = "table", Raw = "raw";
    |text| Error::invalid(format!("{text:?} is no form: write table or raw"))
}

/// How many workers hold what is young, at least. Written `2 for 7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Young {
    /// Workers, 1 to 100.
    pub replicas: u32,
    /// How long data counts as young, from the end of the day or hour that its partition is of.
    pub lasts: Duration,
}

impl FromStr for Young {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            || Error::invalid(format!("{text:?} is no rule of age: write 1 to 100 workers and a time, as in \"2 for 7d\""));
        let (replicas, lasts) = text.split_once(" for ").ok_or_else(wrong)?;
        let replicas = replicas.trim().parse::<u32>().ok().filter(|replicas| (1..=100).contains(replicas)).ok_or_else(wrong)?;
        Ok(Self { replicas, lasts: parse_duration(lasts)? })
    }
}

as_text!(Young);

impl fmt::Display for Young {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.replicas, format_duration(self.lasts))
    }
}

/// A name in Forebay's namespace bound to a URL of shared storage. Holds no credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Never reused.
    pub id: MountId,
    /// The name.
    pub name: MountName,
    /// `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`.
    pub url: String,
    /// How it is used.
    pub options: MountOptions,
}

/// How a mount is reached and used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MountOptions {
    /// The service's URL where it is not the cloud's own, as in `http://127.0.0.1:9000`.
    pub endpoint: Option<String>,
    /// The region that requests are signed for; `us-east-1` when not set.
    pub region: Option<String>,
    /// The credentials' profile; the environment's when not set.
    pub profile: Option<String>,
    /// Requests are not signed.
    pub anonymous: bool,
    /// The bucket stands in the host name instead of the path.
    pub virtual_host: bool,
    /// Writes are refused.
    pub read_only: bool,
    /// When an open asks shared storage.
    pub validate: Validate,
    /// Bound on the traffic from this storage, over all workers and clients together; none when not set.
    pub bandwidth: Option<BitRate>,
    /// What may be taken at once above the bound; what it gives in 20 ms, at least 1 MiB, when not set.
    pub burst: Option<ByteSize>,
    /// How often the mount is listed for new and changed objects; never when not set.
    pub discover: Option<Duration>,
    /// A new object, written through Forebay or discovered, is brought to one random worker at once, unasked.
    pub eager: bool,
    /// Workers that hold each segment that is in use, at least; 1 when not set, 2 below a pin.
    pub replicas: Option<u32>,
    /// In which form files that are read again and again are kept.
    pub hot_form: HotForm,
    /// Workers that hold each segment of young data that is in use, at least, where that is more.
    pub young: Option<Young>,
}

/// Least burst of a mount that does not say, in bytes.
const BURST_BYTES_MIN: u64 = 1 << 20;
/// Part of a second's bytes that is the burst of a mount that does not say: what a busy machine wakes late for is not lost.
const BURST_PART: u64 = 50;

impl MountOptions {
    /// What may be taken at once above the bound, in bytes.
    pub fn burst_bytes(&self) -> u64 {
        let of_bound = || self.bandwidth.map_or(0, |bound| bound.bytes_per_sec() / BURST_PART).max(BURST_BYTES_MIN);
        self.burst.map_or_else(of_bound, |burst| burst.0)
    }
}
