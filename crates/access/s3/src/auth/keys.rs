use std::collections::HashMap;
use std::sync::Arc;

use forebay_types::MountName;
use parking_lot::RwLock;
use ring::hmac;

use crate::error::{S3Error, S3Result};
use crate::settings::{AccessRule, Anonymous};

/// Derived keys kept: a day and a region each for an access key; more are derived again.
const DERIVED_MAX: usize = 1024;

/// The access keys that the gateway knows.
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

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    Key(Arc<AccessRule>),
    Anonymous(Anonymous),
}

impl Caller {
    /// Whether it may do this with a mount.
    pub(crate) fn may(&self, mount: &str, right: Right) -> bool {
        let write = right == Right::Write;
        match self {
            Self::Key(rule) => {
                let sees = |mounts: &Vec<MountName>| mounts.iter().any(|name| name.as_str() == mount);
                rule.mounts.as_ref().is_none_or(sees) && !(write && rule.read_only)
            }
            Self::Anonymous(Anonymous::Off) => false,
            Self::Anonymous(Anonymous::Read) => !write,
            Self::Anonymous(Anonymous::Write) => true,
        }
    }

    pub(crate) fn check(&self, mount: &str, right: Right) -> S3Result<()> {
        if self.may(mount, right) { Ok(()) } else { Err(S3Error::access_denied()) }
    }

    /// Whether it may make and remove mounts.
    pub(crate) fn check_making(&self) -> S3Result<()> {
        match self {
            Self::Key(rule) if rule.mounts.is_none() && !rule.read_only => Ok(()),
            _ => Err(S3Error::access_denied()),
        }
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
