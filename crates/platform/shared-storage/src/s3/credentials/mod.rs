//! With what requests are signed.
//!
//! Owns: where it comes from, AWS's own order of that, and its renewal. Never does: show or log a secret.
//! Start with [`Credentials::find`]. What a profile means is in [`source`]; what of it is exchanged for credentials in [`exchange`], by
//! `reqsign`; web identity, container and instance are `object_store`'s.

mod exchange;
mod profile;
mod renewed;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use forebay_types::{Error, Mount, Result};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3Builder, AwsCredential, AwsCredentialProvider};

use crate::settings::{AccessKey, StorageSettings};
use exchange::{Exchange, FETCH_TIMEOUT};
use profile::Environment;
pub(super) use profile::{Profile, env, region};
use renewed::Renewed;
use source::Source;

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
    /// Of a profile, renewed here.
    Renewed(Box<Renewed>),
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
        let named = mount.options.profile.clone();
        if let Some(profile) = profile {
            let environment = Environment::default();
            let source = Source::of(&environment, &profile).map_err(|error| error.context(format!("mount {}", mount.name)))?;
            if let Some(source) = source {
                let origin = format!("profile {:?}: {}", profile.name, source.describe());
                let exchange = Exchange::new(environment.clone(), region);
                return Ok(Self { kind: Kind::Renewed(Box::new(Renewed::new(environment, named, exchange))), origin });
            }
            if named.is_some() {
                return Err(Error::denied(format!(
                    "mount {}: profile {:?} has no credentials: give it aws_access_key_id and aws_secret_access_key, role_arn, \
                     sso_session or credential_process",
                    mount.name, profile.name
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
        let credential = AwsCredential { key_id, secret_key, token };
        check(&credential, &origin)?;
        Ok(Self { kind: Kind::Fixed(Arc::new(credential)), origin })
    }

    /// What to sign with now; none for requests that aren't signed.
    pub(super) async fn get(&self) -> Result<Option<Arc<AwsCredential>>> {
        match &self.kind {
            Kind::Anonymous => Ok(None),
            Kind::Fixed(credential) => Ok(Some(Arc::clone(credential))),
            Kind::Renewed(renewed) => renewed.get().await.map(Some),
            Kind::Fetched(provider) => match forebay_runtime::time::timeout(FETCH_TIMEOUT, provider.get_credential()).await {
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

/// What stands in a header must be able to.
fn check(credential: &AwsCredential, origin: &str) -> Result<()> {
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    match plain(&credential.key_id) && credential.token.as_deref().is_none_or(plain) {
        true => Ok(()),
        false => Err(Error::denied(format!("the access key of {origin} holds characters that none has"))),
    }
}
