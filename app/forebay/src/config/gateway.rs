//! The S3 gateway's part of the configuration, and the file of its access keys.

use std::fs;

use forebay_data_folder::check_private_file;
use forebay_s3::{AccessRule, Anonymous, GatewaySettings, NewBuckets, Secret};
use forebay_types::{Grant, Role, Scope};
use serde::Deserialize;

use super::Config;
use super::security::scope_of;
use crate::exit::{Failure, Outcome};

/// A file with access keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    #[serde(default)]
    key: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KeyEntry {
    id: String,
    secret: String,
    mounts: Option<Vec<String>>,
    #[serde(default)]
    read_only: bool,
}

impl Config {
    /// The S3 gateway; none when it is switched off or nobody could come in.
    pub(crate) fn gateway(&self) -> Outcome<Option<GatewaySettings>> {
        let settings = &self.settings;
        let Some(listen) = settings.s3.on() else { return Ok(None) };
        let mut gateway = GatewaySettings::new(&listen.0);
        gateway.region = settings.s3_region.clone();
        gateway.domains = vec![settings.s3_domain.clone()];
        gateway.keys = self.keys()?;
        gateway.anonymous = settings.s3_anonymous;
        gateway.upload_disk_bytes_max = settings.s3_upload_disk.0;
        gateway.bucket_configuration = settings.s3_bucket_configuration;
        let endpoint = settings.s3_new_buckets_endpoint.as_ref().map(|url| url.0.clone());
        gateway.new_buckets = settings.s3_new_buckets.as_ref().map(|url| NewBuckets { url: url.0.clone(), endpoint });
        gateway.tls = self.security.tls.clone().filter(|tls| tls.cert.is_some());
        Ok((!gateway.keys.is_empty() || gateway.anonymous != Anonymous::Off).then_some(gateway))
    }

    fn keys(&self) -> Outcome<Vec<AccessRule>> {
        let mut keys = Vec::new();
        // One without the other was refused already.
        if let (Some(id), Some(secret)) = (&self.settings.s3_access_key, &self.settings.s3_secret_key) {
            keys.push(AccessRule::new(id, &secret.0));
        }
        if let Some(file) = &self.settings.s3_keys_file {
            let place = format!("s3-keys-file {}", file.display());
            if !file.is_file() {
                return Err(Failure::Usage(format!("{place}: there is no such file")));
            }
            check_private_file(file).map_err(|error| Failure::Usage(format!("s3-keys-file {error}")))?;
            let text = fs::read_to_string(file).map_err(|error| Failure::Usage(format!("{place}: {error}")))?;
            // The error itself may hold a secret: only its line is told.
            let entries: KeysFile = toml::from_str(&text).map_err(|error| {
                let line = 1 + text.bytes().take(error.span().map_or(0, |span| span.start)).filter(|byte| *byte == b'\n').count();
                Failure::Usage(format!(
                    "{place}:{line} is not as it must be: write [[key]] with id, secret, and perhaps mounts and read-only"
                ))
            })?;
            for entry in entries.key {
                let role = if entry.read_only { Role::Read } else { Role::Write };
                let scope = if let Some(mounts) = entry.mounts { scope_of(&mounts)? } else { Scope::All };
                let grant = Grant { role, scope, expires: None };
                grant.check().map_err(|error| Failure::Usage(format!("{place}: key {}: {}", entry.id, error.message())))?;
                keys.push(AccessRule { id: entry.id, secret: Secret::new(entry.secret), grant });
            }
        }
        if keys.iter().any(|key| key.id.is_empty() || key.id.contains('/')) {
            return Err(Failure::Usage("an access key's id is some text without a slash".to_string()));
        }
        Ok(keys)
    }
}
