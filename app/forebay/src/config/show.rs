use serde::Serialize;

use super::Config;
use super::settings::{KEYS, SWITCHES};
use super::sources::Source;
use crate::exit::Outcome;
use crate::output::Output;

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    value: Option<String>,
    source: &'a str,
}

impl Config {
    /// Prints every key with its effective value, where the value is from and what the key is for: as TOML that can be
    /// kept as a file, or one JSON object a key. Secrets are not shown.
    pub(crate) fn show(&self, output: &mut Output) -> Outcome {
        for (key, about) in KEYS {
            let value = self.value(key);
            let source = match self.sources.of(key) {
                Source::Default => "default".to_string(),
                Source::File(file) => file.display().to_string(),
                Source::Variable => format!("FOREBAY_{}", key.to_ascii_uppercase().replace('-', "_")),
                Source::Flag => format!("--{key}"),
            };
            if output.json() {
                output.record(&Line { key, value, source: &source })?;
                continue;
            }
            output.line(&format!("# {about} ({source})"))?;
            output.line(&match value {
                // Never the secret itself, and nothing that could be taken for one.
                Some(value) if matches!(*key, "token" | "cluster-secret" | "s3-secret-key") => format!("# {key} {value}"),
                Some(value) if SWITCHES.contains(key) || *key == "slots" => format!("{key} = {value}"),
                Some(value) => format!("{key} = {value:?}"),
                None => format!("# {key} ="),
            })?;
        }
        Ok(())
    }

    fn value(&self, key: &str) -> Option<String> {
        let path = |path: &Option<figment::value::magic::RelativePathBuf>| {
            path.as_ref().map(|path| path.relative().display().to_string())
        };
        let settings = &self.settings;
        match key {
            "coordinator" => Some(settings.coordinator.clone()),
            "coordinator-listen" => Some(settings.coordinator_listen.clone().unwrap_or_else(|| settings.coordinator.clone())),
            "scheduler" => settings.scheduler.clone(),
            "wait" => Some(forebay_types::format_duration(settings.wait.0)),
            "scheduler-listen" => Some(settings.scheduler_listen.clone()),
            "executor-listen" => Some(settings.executor_listen.clone()),
            "slots" => settings.slots.map(|slots| slots.0.to_string()),
            "job-order" => Some(settings.job_order.to_string()),
            "shuffle" => Some(settings.shuffle.to_string()),
            "shuffle-storage-class" => Some(settings.shuffle_storage_class.to_string()),
            "data-scheduler" => Some(settings.data_scheduler.to_string()),
            "worker-listen" => Some(settings.worker_listen.clone()),
            "advertise" => settings.advertise.clone(),
            "location" => settings.location.as_ref().map(|label| label.0.clone()),
            "http" => Some(settings.http.clone()),
            "metrics-anonymous" => Some(settings.metrics_anonymous.to_string()),
            "s3" => Some(settings.s3.clone()),
            "s3-access-key" => settings.s3_access_key.clone(),
            "s3-secret-key" => settings.s3_secret_key.as_ref().map(|_| "(set)".to_string()),
            "s3-keys-file" => path(&settings.s3_keys_file),
            "s3-anonymous" => Some(settings.s3_anonymous.clone()),
            "s3-domain" => Some(settings.s3_domain.clone()),
            "s3-region" => Some(settings.s3_region.clone()),
            "s3-new-buckets" => settings.s3_new_buckets.clone(),
            "s3-new-buckets-endpoint" => settings.s3_new_buckets_endpoint.clone(),
            "s3-bucket-configuration" => Some(settings.s3_bucket_configuration.to_string()),
            "flight" => Some(settings.flight.clone()),
            "data-dir" => Some(self.data_dir.display().to_string()),
            "metadata" => Some(without_password(&self.metadata_url())),
            "dram" => Some(forebay_types::ByteSize(self.dram_bytes).to_string()),
            "disk" => Some(forebay_types::ByteSize(self.disk_bytes).to_string()),
            "in-place" => Some(settings.in_place.to_string()),
            "lease" => Some(forebay_types::format_duration(settings.lease.0)),
            "placement" => Some(settings.placement.to_string()),
            "slack" => Some(settings.slack.to_string()),
            "budget" => Some(settings.budget.0.to_string()),
            "storage-share" => Some(settings.storage_share.to_string()),
            "window" => Some(forebay_types::format_duration(settings.window.0)),
            "poll" => Some(forebay_types::format_duration(settings.poll.0)),
            "serve-bandwidth" => settings.serve_bandwidth.map(|rate| rate.to_string()),
            "temporary-share" => Some(settings.temporary_share.to_string()),
            "query-history" => Some(settings.query_history.to_string()),
            "sql-memory" => Some(forebay_types::ByteSize(self.sql().memory_bytes).to_string()),
            "sql-spill" => Some(forebay_types::ByteSize(self.sql().spill_bytes).to_string()),
            "file-roots" => settings.file_roots.as_ref().map(ToString::to_string),
            "direct-stores" => Some(settings.direct_stores.to_string()),
            "token" => settings.token.as_ref().map(|_| "(set)".to_string()),
            "token-file" => path(&settings.token_file),
            "cluster-secret" => settings.cluster_secret.as_ref().map(|_| "(set)".to_string()),
            "cluster-secret-file" => path(&settings.cluster_secret_file),
            "tls-cert" => path(&settings.tls_cert),
            "tls-key" => path(&settings.tls_key),
            "tls-ca" => path(&settings.tls_ca),
            "tls-client-ca" => path(&settings.tls_client_ca),
            "log" => settings.log.clone(),
            "audit-log" => path(&settings.audit_log),
            _ => None,
        }
    }
}

/// A database's URL as it may be shown.
fn without_password(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) if parsed.password().is_some() => {
            // Only URLs without a host refuse a password, and those have none.
            let _ = parsed.set_password(Some("***"));
            parsed.to_string()
        }
        _ => url.to_string(),
    }
}
