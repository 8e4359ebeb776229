//! Rights as they are kept and shown: roles, scopes, expiry, and what a token's proof is checked against.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, MountName, Result};

/// Bytes of a token's name at most.
const NAME_BYTES_MAX: usize = 64;
/// Mounts that one token may name.
const MOUNTS_MAX: usize = 256;

/// How much a credential lets its holder do; each with all that stands above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read data.
    Read,
    /// Write and delete it.
    Write,
    /// Change mounts, pins, tokens and workers.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// Where a credential is good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Everywhere, and what belongs to no mount.
    All,
    /// Some mounts.
    Only {
        /// In byte order.
        mounts: Vec<MountName>,
        /// The temporary namespace, too.
        temporary: bool,
    },
}

/// What a credential lets its holder do, where, and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// How much.
    pub role: Role,
    /// Where.
    pub scope: Scope,
    /// Until when, in seconds since 1970; for ever without it.
    pub expires: Option<u64>,
}

impl Grant {
    /// A right everywhere, for ever.
    pub fn everywhere(role: Role) -> Self {
        Self { role, scope: Scope::All, expires: None }
    }

    /// `Invalid` where it is none that anybody makes.
    pub fn check(&self) -> Result<()> {
        match &self.scope {
            Scope::Only { mounts, temporary } if mounts.is_empty() && !temporary => {
                Err(Error::invalid("a token for no mount is good for nothing: name one, or leave --mount out"))
            }
            Scope::Only { mounts, .. } if mounts.len() > MOUNTS_MAX => {
                Err(Error::invalid(format!("a token names {MOUNTS_MAX} mounts at most: leave --mount out for all")))
            }
            _ => Ok(()),
        }
    }
}

/// `Invalid` where a text is no name of a token: 1 to 64 of `a-z 0-9 - _`.
pub fn check_token_name(name: &str) -> Result<()> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(legal) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{name:?} is no name of a token: use 1 to {NAME_BYTES_MAX} lower-case letters, digits, '-' and '_'"
        ))),
    }
}

/// What a proof that somebody knows a secret is checked against. Who has these can check, and can prove to be the server; who
/// holds the secret can't be made of them.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenKeys {
    /// A hash of the key that the holder proves to have.
    pub stored: [u8; 32],
    /// The key that the server proves to have.
    pub server: [u8; 32],
}

/// Leaves the keys out, so that they can't reach a log.
impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKeys")
    }
}

/// A credential as those who let its holder in know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verifier {
    /// What its holder names it by: `etl.2` is the second one of `etl`.
    pub id: String,
    /// What it lets its holder do.
    pub grant: Grant,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// What proofs are checked against.
    pub keys: TokenKeys,
}

impl Verifier {
    /// What everybody may see of it.
    pub fn info(&self) -> TokenInfo {
        TokenInfo { id: self.id.clone(), grant: self.grant.clone(), created: self.created }
    }
}

/// A token as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Its id.
    pub id: String,
    /// What it lets its holder do.
    pub grant: Grant,
    /// When it was made, in seconds since 1970.
    pub created: u64,
}

/// Who somebody is to the server that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerInfo {
    /// A token's id, or what stands for one.
    pub name: String,
    /// What it lets its holder do; none of who is no user.
    pub grant: Option<Grant>,
}
