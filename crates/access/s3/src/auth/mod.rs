//! Who asks, and whether it may: AWS Signature Version 4, in a header or in the URL, on every request.

mod canonical;
mod credential;
mod signer;
mod stamp;
mod verify;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use forebay_rights::{Need, Place, Who, decide, grants};
use forebay_transport::unix_now;
use forebay_types::{MountName, Role, Scope};
use parking_lot::RwLock;
use ring::hmac;

use crate::dialect::{S3Error, S3Result};
use crate::settings::{AccessRule, Anonymous};

pub(crate) use signer::{Sent, signer};
pub(crate) use verify::{BodyHash, ChunkSigning, authenticate};

/// Derived keys kept: a day and a region each for an access key; more are derived again.
const DERIVED_MAX: usize = 1024;

pub(crate) struct Keys {
    rules: HashMap<String, Arc<AccessRule>>,
    anonymous: Anonymous,
    /// By credential: `KEY/20240102/us-east-1/s3/aws4_request`.
    derived: RwLock<HashMap<String, (Arc<AccessRule>, hmac::Key)>>,
}

/// What may be done with a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Read,
    Write,
}

#[derive(Clone, Debug)]
pub(crate) enum Caller {
    Key(Arc<AccessRule>),
    Anonymous(Anonymous),
}

impl Caller {
    pub(crate) fn may(&self, mount: &str, right: Right) -> bool {
        let need = |place| match right {
            Right::Read => Need::read(place),
            Right::Write => Need::write(place),
        };
        match self {
            Self::Key(rule) => {
                let place = match &rule.grant.scope {
                    Scope::All => Place::Everything,
                    Scope::Only { .. } => place_of(mount),
                };
                grants(&rule.grant, &need(place), unix_now(), |_| None)
            }
            Self::Anonymous(anonymous) => {
                let role = match anonymous {
                    Anonymous::Off => None,
                    Anonymous::Read => Some(Role::Read),
                    Anonymous::Write => Some(Role::Write),
                };
                decide(&Who::Anonymous(role), &need(Place::Everything), 0, |_| None).is_ok()
            }
        }
    }

    pub(crate) fn check(&self, mount: &str, right: Right) -> S3Result<()> {
        if self.may(mount, right) { Ok(()) } else { Err(S3Error::access_denied()) }
    }

    /// Whether it may make and remove mounts, where the administrator has said that S3 clients may.
    pub(crate) fn check_making(&self) -> S3Result<()> {
        match self {
            Self::Key(rule) if grants(&rule.grant, &Need::write(Place::Cluster), unix_now(), |_| None) => Ok(()),
            _ => Err(S3Error::access_denied()),
        }
    }
}

/// The name in the audit log.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(rule) => write!(f, "access key {}", rule.id),
            Self::Anonymous(_) => f.write_str("anonymous"),
        }
    }
}

/// A bucket is a mount, or what no mount is called.
fn place_of(bucket: &str) -> Place {
    let temporary = MountName::temporary();
    match bucket.parse() {
        Ok(name) => Place::Named(name),
        Err(_) if bucket == temporary.as_str() => Place::Named(temporary),
        Err(_) => Place::Everything,
    }
}

impl Keys {
    pub(crate) fn new(rules: &[AccessRule], anonymous: Anonymous) -> Self {
        let rules = rules.iter().map(|rule| (rule.id.clone(), Arc::new(rule.clone()))).collect();
        Self { rules, anonymous, derived: RwLock::default() }
    }

    pub(crate) fn anonymous(&self) -> S3Result<Caller> {
        match self.anonymous {
            Anonymous::Off => Err(S3Error::access_denied()),
            allowed => Ok(Caller::Anonymous(allowed)),
        }
    }

    pub(crate) fn find(&self, id: &str) -> S3Result<Arc<AccessRule>> {
        self.rules.get(id).cloned().ok_or_else(|| S3Error::invalid_access_key().with("AWSAccessKeyId", id))
    }

    /// The key that signs a day's requests for a region. `scope` is `20240102/us-east-1/s3/aws4_request`.
    pub(crate) fn signing_key(&self, rule: &Arc<AccessRule>, scope: &str) -> hmac::Key {
        let credential = format!("{}/{scope}", rule.id);
        if let Some((_, key)) = self.derived(&credential) {
            return key;
        }
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{}", rule.secret.text()).as_bytes());
        for part in scope.split('/') {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        let mut derived = self.derived.write();
        if derived.len() >= DERIVED_MAX {
            derived.clear();
        }
        derived.insert(credential, (Arc::clone(rule), key.clone()));
        key
    }

    /// The rule and the signing key of a credential that was used before.
    pub(crate) fn derived(&self, credential: &str) -> Option<(Arc<AccessRule>, hmac::Key)> {
        self.derived.read().get(credential).cloned()
    }
}
