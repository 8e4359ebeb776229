//! With what requests are signed.
//!
//! Owns: where it comes from, AWS's own order of that, and its renewal. Never does: show or log a secret.
//! Start with [`Credentials::find`]. What a profile means is in [`source`]; what of it is exchanged for credentials in [`exchange`], by
//! `reqsign`; web identity, container and instance are `object_store`'s, by [`machine`].

mod exchange;
mod machine;
mod profile;
mod renewed;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use forebay_types::{Error, Mount, Result};
use object_store::aws::AwsCredential;

use crate::settings::{AccessKey, StorageSettings};
use exchange::Exchange;
use machine::{Hand, Machine};
use profile::Environment;
pub(super) use profile::{Profile, env, region};
use renewed::Renewed;
use source::Source;

/// With what requests are signed, and where that comes from.
pub(super) struct Credentials {
    kind: Kind,
    /// For messages; holds no secret.
    pub(super) origin: String,
}

enum Kind {
    /// Requests are not signed.
    Anonymous,
    Fixed(Arc<AwsCredential>),
    /// Of a profile, renewed here.
    Renewed(Box<Renewed>),
    /// Of the machine, renewed by `object_store`.
    Machine(Machine),
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
        if mount.options.profile.is_none() {
            match (env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")) {
                (Some(id), Some(secret)) => {
                    let origin = "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)".into();
                    return Self::fixed(id, secret, env("AWS_SESSION_TOKEN"), origin);
                }
                (None, None) => {}
                (id, _) => {
                    let (set, lacking) = match id {
                        Some(_) => ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
                        None => ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
                    };
                    return Err(Error::denied(format!("mount {}: {set} is set and {lacking} is not: set both", mount.name)));
                }
            }
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
        let machine = Machine::find(Hand::Any, &Environment::default(), region)
            .map_err(|error| error.context(format!("mount {}", mount.name)))?;
        let origin = machine.link.clone();
        Ok(Self { kind: Kind::Machine(machine), origin })
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
            Kind::Machine(machine) => machine.get().await.map(Some).map_err(|error| {
                error.context(
                    "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of `forebay up`, \
                     or of each process that reads this storage, or name a profile of ~/.aws/credentials (--profile, AWS_PROFILE), \
                     or mount with --anonymous",
                )
            }),
        }
    }

    /// Shared storage says that these have run out. Whether others are to be had.
    pub(super) fn ran_out(&self, of: &AwsCredential) -> bool {
        match &self.kind {
            Kind::Renewed(renewed) => renewed.ran_out(of),
            Kind::Anonymous | Kind::Fixed(_) | Kind::Machine(_) => false,
        }
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
