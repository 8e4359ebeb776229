use std::sync::Arc;
use std::time::Duration;

use forebay_types::{Error, Mount, Result};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3Builder, AwsCredential, AwsCredentialProvider};

use super::profile::{Profile, env};
use crate::storage::{AccessKey, StorageSettings};

/// Longest wait for a service that hands out credentials.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// With what requests are signed, and where that comes from.
pub(super) struct Credentials {
    kind: Kind,
    /// For messages; holds no secret.
    origin: String,
}

enum Kind {
    /// Requests are not signed.
    Anonymous,
    Fixed(Arc<AwsCredential>),
    /// Temporary ones, fetched and renewed by `object_store`: web identity, container, instance.
    Fetched(AwsCredentialProvider),
}

impl Credentials {
    /// The first of: none at all, the program's own, the mount's profile, the environment's keys, `AWS_PROFILE` or the
    /// default profile, and what the machine hands out.
    pub(super) fn find(mount: &Mount, settings: &StorageSettings, profile: Option<Profile>, region: &str) -> Result<Self> {
        if mount.options.anonymous {
            return Ok(Self { kind: Kind::Anonymous, origin: "none: the mount is anonymous".into() });
        }
        if let Some(AccessKey { id, secret }) = &settings.access_key {
            return Self::fixed(id.clone(), secret.clone(), None, "the program that opened the mount".into());
        }
        if mount.options.profile.is_none()
            && let (Some(id), Some(secret)) = (env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"))
        {
            let origin = "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)".into();
            return Self::fixed(id, secret, env("AWS_SESSION_TOKEN"), origin);
        }
        if let Some(profile) = profile {
            let origin = format!("profile {:?}", profile.name);
            if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
                return Self::fixed(id, secret, profile.get("aws_session_token"), origin);
            }
            let other = ["credential_process", "sso_session", "sso_start_url", "source_profile", "role_arn"];
            let other = other.into_iter().find(|key| profile.get(key).is_some());
            if other.is_some() || mount.options.profile.is_some() {
                let why = other.map_or_else(|| "holds no keys".into(), |key| format!("uses {key}, which is not supported"));
                return Err(Error::denied(format!(
                    "mount {}: {origin} {why}: give it aws_access_key_id and aws_secret_access_key, or export them \
                     (`aws configure export-credentials --format env` prints them)",
                    mount.name
                )));
            }
        }
        let retry = RetryConfig { max_retries: 1, retry_timeout: FETCH_TIMEOUT, ..Default::default() };
        let builder = AmazonS3Builder::from_env().with_bucket_name("unused").with_region(region).with_retry(retry);
        let store = builder
            .with_allow_http(true)
            .build()
            .map_err(|error| Error::denied(format!("mount {}: no credentials: {error}", mount.name)))?;
        Ok(Self { kind: Kind::Fetched(Arc::clone(store.credentials())), origin: "this machine's role".into() })
    }

    fn fixed(key_id: String, secret_key: String, token: Option<String>, origin: String) -> Result<Self> {
        // What stands in a header must be able to.
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !plain(&key_id) || !token.as_deref().is_none_or(plain) {
            return Err(Error::denied(format!("the access key of {origin} holds characters that none has")));
        }
        Ok(Self { kind: Kind::Fixed(Arc::new(AwsCredential { key_id, secret_key, token })), origin })
    }

    /// What to sign with now; none for requests that aren't signed.
    pub(super) async fn get(&self) -> Result<Option<Arc<AwsCredential>>> {
        match &self.kind {
            Kind::Anonymous => Ok(None),
            Kind::Fixed(credential) => Ok(Some(Arc::clone(credential))),
            Kind::Fetched(provider) => match tokio::time::timeout(FETCH_TIMEOUT, provider.get_credential()).await {
                Ok(Ok(credential)) => Ok(Some(credential)),
                // The cause may quote an answer that holds a secret.
                Ok(Err(_)) | Err(_) => Err(Error::denied(format!(
                    "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of \
                     ~/.aws/credentials (--profile, AWS_PROFILE), or mount with --anonymous; {} gave none either",
                    self.origin
                ))),
            },
        }
    }

    /// Where they come from.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }
}
