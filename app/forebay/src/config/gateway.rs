use figment::Figment;
use figment::providers::{Format, Toml};
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
        if self.settings.s3 == "off" {
            return Ok(None);
        }
        let listen = &self.settings.s3;
        if listen.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
            return Err(Failure::Usage(format!("--s3 {listen}: write it as HOST:PORT, as in 127.0.0.1:7490, or off")));
        }
        let mut gateway = GatewaySettings::new(listen);
        gateway.region = self.settings.s3_region.clone();
        gateway.domains = vec![self.settings.s3_domain.clone()];
        gateway.keys = self.keys()?;
        gateway.anonymous = match self.settings.s3_anonymous.as_str() {
            "off" => Anonymous::Off,
            "read" => Anonymous::Read,
            "write" => Anonymous::Write,
            other => return Err(Failure::Usage(format!("s3-anonymous {other:?}: write off, read or write"))),
        };
        gateway.bucket_configuration = self.settings.s3_bucket_configuration;
        let endpoint = self.settings.s3_new_buckets_endpoint.clone();
        gateway.new_buckets = self.settings.s3_new_buckets.clone().map(|url| NewBuckets { url, endpoint });
        gateway.tls = self.security.tls.clone().filter(|tls| tls.cert.is_some());
        Ok((!gateway.keys.is_empty() || gateway.anonymous != Anonymous::Off).then_some(gateway))
    }

    fn keys(&self) -> Outcome<Vec<AccessRule>> {
        let mut keys = Vec::new();
        match (&self.settings.s3_access_key, &self.settings.s3_secret_key) {
            (Some(id), Some(secret)) => keys.push(AccessRule::new(id, secret)),
            (None, None) => {}
            _ => return Err(Failure::Usage("s3-access-key and s3-secret-key go together: set both or none".to_string())),
        }
        if let Some(file) = &self.settings.s3_keys_file {
            let file = file.relative();
            let place = format!("s3-keys-file {}", file.display());
            if !file.is_file() {
                return Err(Failure::Usage(format!("{place}: there is no such file")));
            }
            check_private_file(&file).map_err(|error| Failure::Usage(format!("s3-keys-file {error}")))?;
            // The error's kind names the field, never its value.
            let entries: KeysFile = Figment::from(Toml::file_exact(&file)).extract().map_err(|error| {
                let field = error.path.join(".");
                Failure::Usage(format!(
                    "{place}: {field} is not as it must be: write [[key]] with id, secret, and perhaps mounts and read-only"
                ))
            })?;
            for entry in entries.key {
                let role = if entry.read_only { Role::Read } else { Role::Write };
                let scope = match entry.mounts {
                    None => Scope::All,
                    Some(mounts) => scope_of(&mounts)?,
                };
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
