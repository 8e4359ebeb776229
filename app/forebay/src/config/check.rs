//! What is wrong with settings by themselves. It is told before anything starts, whoever reads them; what was not said is not looked at.

use forebay_coordinator::CoordinatorSettings;
use forebay_trace::Collector;
use forebay_transport::Credential;
use forebay_types::{BLOCK_BYTES, Result};

use super::sources::Sources;
use super::table::Settings;
use crate::exit::{Failure, Outcome};

/// Refuses settings that nothing could start with.
pub(super) fn check(settings: &Settings, sources: &Sources) -> Outcome {
    let said = |key: &str| sources.of(key).is_some();
    let right = |key: &str, checked: Result<()>| match checked {
        Err(error) if said(key) => Err(sources.wrong(key, error.message())),
        _ => Ok(()),
    };
    right("lease", CoordinatorSettings::check_lease(settings.lease))?;
    right("metadata", CoordinatorSettings::check_metadata(&settings.metadata.0))?;
    if let Some(endpoint) = &settings.otlp_endpoint {
        right("otlp-endpoint", Collector::check(&endpoint.0))?;
    }
    if let Some(secret) = &settings.cluster_secret {
        right("cluster-secret", Credential::member(&secret.0).map(|_| ()))?;
    }
    let too_small = |key: &str, bytes: u64, or: &str| match said(key) && bytes < BLOCK_BYTES {
        true => Err(sources.wrong(key, &format!("{bytes} bytes are too few for a tier: give it 1MiB{or}"))),
        false => Ok(()),
    };
    too_small("dram", settings.dram.0, "")?;
    if settings.disk.0 != 0 {
        too_small("disk", settings.disk.0, ", or 0B for none")?;
    }
    for (_, size) in settings.disk_folders.iter().flat_map(|folders| &folders.0) {
        too_small("disk-folders", size.map_or(BLOCK_BYTES, |size| size.0), ", or leave the folder out")?;
    }
    match (&settings.s3_access_key, &settings.s3_secret_key) {
        (Some(_), None) | (None, Some(_)) => {
            Err(Failure::Usage("s3-access-key and s3-secret-key go together: set both or none".to_string()))
        }
        _ => Ok(()),
    }
}
