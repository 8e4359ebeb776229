//! What processes show each other, and whom they let in.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_data_folder::{check_private_file, owner_secret, owner_secret_of, read_private_file};
use forebay_transport::{Admission, Credential, Security, TlsSettings, random_secret};

use forebay_types::{MountName, Scope};

use super::table::Settings;
use super::types::Secret;
use crate::exit::{Failure, Outcome};

/// Commands show the token that they are given, else the owner's secret where the coordinator is this user's on this machine.
pub(super) fn of_client(settings: &Settings) -> Outcome<Security> {
    let shows = if let Some(token) = token(settings)? { Some(token) } else { found_owner(settings)? };
    Ok(Security { shows, admits: Arc::default(), tls: tls(settings)?, ..Security::default() })
}

/// A coordinator's process is its owner's; it lets in the cluster's processes, and the administrator of its configuration.
pub(super) fn of_coordinator(settings: &Settings) -> Outcome<Security> {
    let owner = Credential::owner(&owner_secret(&settings.data_dir, random_secret)?)?;
    let others = [member(settings)?, token(settings)?];
    let admits = Arc::new(Admission::of([Some(&owner), others[0].as_ref(), others[1].as_ref()].into_iter().flatten()));
    Ok(Security { shows: Some(owner), admits, tls: tls(settings)?, ..Security::default() })
}

/// The cluster's other processes show its secret; on the coordinator's machine the owner's does as well. Whom else they let in,
/// the coordinator tells them.
pub(super) fn of_member(settings: &Settings) -> Outcome<Security> {
    let shows = match member(settings)? {
        Some(member) => member,
        None => found_owner(settings)?.ok_or_else(|| {
            Failure::Usage(format!(
                "nothing proves to the coordinator at {} that this is a process of its cluster: set FOREBAY_CLUSTER_SECRET or \
                 cluster-secret-file on both; on one machine start the coordinator first, as the same user",
                settings.coordinator.0
            ))
        })?,
    };
    let admits = Arc::new(Admission::of([&shows]));
    Ok(Security { shows: Some(shows), admits, tls: tls(settings)?, ..Security::default() })
}

/// The mounts of these names; `tmp` stands for temporary data.
pub(crate) fn scope_of(mounts: &[String]) -> Outcome<Scope> {
    let temporary = MountName::temporary();
    let (tmp, named): (Vec<_>, Vec<_>) = mounts.iter().partition(|mount| *mount == temporary.as_str());
    let mut mounts = named.into_iter().map(|mount| mount.parse()).collect::<forebay_types::Result<Vec<MountName>>>()?;
    mounts.sort();
    mounts.dedup();
    Ok(Scope::Only { mounts, temporary: !tmp.is_empty() })
}

/// Whether the cluster's secret is in the configuration.
pub(super) fn names_member(settings: &Settings) -> bool {
    settings.cluster_secret.is_some() || settings.cluster_secret_file.is_some()
}

/// Whether anybody could come in from another machine.
pub(super) fn is_configured(settings: &Settings) -> bool {
    settings.token.is_some() || settings.token_file.is_some() || names_member(settings)
}

fn found_owner(settings: &Settings) -> Outcome<Option<Credential>> {
    let mut secret = None;
    for place in settings.coordinator.each() {
        secret = secret.or(owner_secret_of(place)?);
    }
    let secret = secret.map_or_else(|| forebay_data_folder::owner_secret_in(&settings.data_dir), |secret| Ok(Some(secret)))?;
    Ok(secret.map(|secret| Credential::owner(&secret)).transpose()?)
}

fn token(settings: &Settings) -> Outcome<Option<Credential>> {
    let text = text(&settings.token, &settings.token_file, "token-file")?;
    text.map(|text| Credential::token(&text)).transpose().map_err(wrong("token"))
}

fn member(settings: &Settings) -> Outcome<Option<Credential>> {
    let text = text(&settings.cluster_secret, &settings.cluster_secret_file, "cluster-secret-file")?;
    text.map(|text| Credential::member(&text)).transpose().map_err(wrong("cluster-secret"))
}

fn wrong(key: &'static str) -> impl Fn(forebay_types::Error) -> Failure {
    move |error| Failure::Usage(format!("configuration key {key}: {}", error.message()))
}

/// A secret itself, or what a file of it holds.
fn text(secret: &Option<Secret>, file: &Option<PathBuf>, key: &str) -> Outcome<Option<String>> {
    match (secret, file) {
        (Some(secret), _) => Ok(Some(secret.0.clone())),
        (None, Some(file)) => {
            let read = read_private_file(file).map_err(|error| Failure::Usage(format!("{key} {error}")))?;
            let missing = || Failure::Usage(format!("{key} {}: there is no such file", file.display()));
            Ok(Some(read.ok_or_else(missing)?))
        }
        (None, None) => Ok(None),
    }
}

fn tls(settings: &Settings) -> Outcome<Option<TlsSettings>> {
    let (ca, client_ca) = (settings.tls_ca.clone(), settings.tls_client_ca.clone());
    let (cert, key) = (settings.tls_cert.clone(), settings.tls_key.clone());
    if cert.is_some() != key.is_some() {
        return Err(Failure::Usage("tls-cert and tls-key go together: set both or none".to_string()));
    }
    if client_ca.is_some() && cert.is_none() {
        return Err(Failure::Usage("tls-client-ca is for what listens with tls-cert and tls-key: set these too".to_string()));
    }
    if let Some(key) = &key
        && key.is_file()
    {
        check_private_file(key).map_err(|error| Failure::Usage(format!("tls-key {error}")))?;
    }
    Ok((ca.is_some() || cert.is_some()).then_some(TlsSettings { ca, cert, key, client_ca }))
}
