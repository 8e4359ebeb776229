//! What the machine hands out, by `object_store`: by web identity, to a container, to an instance.

use std::sync::Arc;
use std::time::Duration;

use forebay_runtime::time::timeout;
use forebay_types::{Error, Result};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential, AwsCredentialProvider};

use super::profile::Environment;

/// Longest wait for whoever hands out credentials.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
const ROLE_ARN: &str = "AWS_ROLE_ARN";
const RELATIVE_URI: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL_URI: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const AUTHORIZATION_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

/// Which of those that hand something out are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// The first that the environment names, else the instance.
    Any,
    Container,
    Instance,
}

/// One that hands credentials out. It renews what it gave.
pub(super) struct Machine {
    provider: AwsCredentialProvider,
    pub(super) link: String,
}

impl Machine {
    /// Asks nobody yet. `Denied` where the environment does not say how.
    pub(super) fn find(hand: Hand, env: &Environment, region: &str) -> Result<Self> {
        let both = |one: &str, other: &str| Some((env.get(one)?, env.get(other)?));
        let retry = RetryConfig { max_retries: 1, retry_timeout: FETCH_TIMEOUT, ..Default::default() };
        let builder = AmazonS3Builder::new().with_bucket_name("unused").with_region(region).with_retry(retry);
        // Nothing else of the environment: keys that stand there are no machine's.
        let (builder, link) = if let (Hand::Any, Some((file, role))) = (hand, both(TOKEN_FILE, ROLE_ARN)) {
            let link = format!("web identity ({TOKEN_FILE} at STS, for {role})");
            let builder = builder.with_config(Key::WebIdentityTokenFile, file).with_config(Key::RoleArn, role);
            let more = [(Key::RoleSessionName, "AWS_ROLE_SESSION_NAME"), (Key::StsEndpoint, "AWS_ENDPOINT_URL_STS")];
            (with(builder, env, more), link)
        } else if let (Hand::Any | Hand::Container, Some(uri)) = (hand, env.get(RELATIVE_URI)) {
            (builder.with_config(Key::ContainerCredentialsRelativeUri, uri), format!("the container ({RELATIVE_URI})"))
        } else if let (Hand::Any | Hand::Container, Some((uri, file))) = (hand, both(FULL_URI, AUTHORIZATION_FILE)) {
            let builder = builder.with_config(Key::ContainerCredentialsFullUri, uri);
            let builder = builder.with_config(Key::ContainerAuthorizationTokenFile, file);
            (builder, format!("the container ({FULL_URI}, {AUTHORIZATION_FILE})"))
        } else if hand == Hand::Container {
            return Err(Error::denied(format!(
                "credential_source = EcsContainer, and neither {RELATIVE_URI} nor {FULL_URI} with {AUTHORIZATION_FILE} is set"
            )));
        } else {
            let more = [(Key::MetadataEndpoint, "AWS_METADATA_ENDPOINT"), (Key::ImdsV1Fallback, "AWS_IMDSV1_FALLBACK")];
            (with(builder, env, more), format!("the instance's metadata{}", lacking(env)))
        };
        let store = builder
            .with_allow_http(true)
            .build()
            .map_err(|error| Error::denied(format!("{link} can't be asked for credentials: {error}")))?;
        Ok(Self { provider: Arc::clone(store.credentials()), link })
    }

    /// `Denied`, with who gave none, where there are none.
    pub(super) async fn get(&self) -> Result<Arc<AwsCredential>> {
        match timeout(FETCH_TIMEOUT, self.provider.get_credential()).await {
            Ok(Ok(credential)) => Ok(credential),
            // The cause may quote an answer that holds a secret.
            Ok(Err(_)) => Err(Error::denied(format!("{} gave none", self.link))),
            Err(_) => Err(Error::denied(format!("{} did not answer for {} s", self.link, FETCH_TIMEOUT.as_secs()))),
        }
    }
}

fn with(builder: AmazonS3Builder, env: &Environment, more: [(Key, &str); 2]) -> AmazonS3Builder {
    more.into_iter().fold(builder, |builder, (key, name)| match env.get(name) {
        Some(value) => builder.with_config(key, value),
        None => builder,
    })
}

/// What is set and of no use alone.
fn lacking(env: &Environment) -> String {
    let pairs = [(TOKEN_FILE, ROLE_ARN), (FULL_URI, AUTHORIZATION_FILE)];
    let alone = pairs.iter().filter(|(one, other)| env.get(one).is_some() && env.get(other).is_none());
    alone.map(|(one, other)| format!(" ({one} is set and {other} is not)")).collect()
}
