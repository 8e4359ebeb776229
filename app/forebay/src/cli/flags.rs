use std::path::PathBuf;

use clap::Args;
use forebay_types::ByteSize;
use serde::Serialize;

/// Flags of every command; each overrides the configuration key of the same name.
#[derive(Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalFlags {
    /// Address of the coordinator [default: 127.0.0.1:7400]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    coordinator: Option<String>,
    /// Address of the scheduler of distributed SQL, or off [default: the one that the coordinator knows, if any]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler: Option<String>,
    /// File that holds the token to show; else $FOREBAY_TOKEN. The user who started a cluster on this machine needs none
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<PathBuf>,
    /// Certificate authority that the cluster's certificates are checked against; switches TLS on
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_ca: Option<PathBuf>,
    /// Certificate that this process shows; switches TLS on
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_key: Option<PathBuf>,
    /// What to log to the standard error, as in info or forebay_worker=debug
    #[arg(long, global = true, value_name = "FILTER", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
}

/// Flags of what runs a coordinator, a worker or both.
#[derive(Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RoleFlags {
    /// Folder of the tiers and of the embedded metadata [default: ./forebay-data]
    #[arg(long, value_name = "FOLDER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,
    /// Address that the coordinator listens at [default: the one of --coordinator]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    coordinator_listen: Option<String>,
    /// Address that the worker's data plane listens at [default: 127.0.0.1:7401]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_listen: Option<String>,
    /// host:port that clients reach the worker at, where it isn't the one it listens at
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    advertise: Option<String>,
    /// Where the worker is, as temporary nodes may ask for: the label of a host or rack [default: the host's name]
    #[arg(long, value_name = "LABEL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// Address of /metrics and /healthz, or off [default: 127.0.0.1:7480; executor 7481, scheduler 7482, gateway 7483]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<String>,
    /// Answer /metrics to who shows no token as well
    #[arg(long)]
    #[serde(skip_serializing_if = "is_false")]
    metrics_anonymous: bool,
    /// File that gets a line of JSON for whatever changes something or is refused here
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_log: Option<PathBuf>,
    /// File with what the cluster's processes on several machines know each other by; else $FOREBAY_CLUSTER_SECRET
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_secret_file: Option<PathBuf>,
    /// Address of the S3 gateway, or off [default: 127.0.0.1:7490, once there is an access key]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    s3: Option<String>,
    /// File with the S3 gateway's access keys; else $FOREBAY_S3_ACCESS_KEY and $FOREBAY_S3_SECRET_KEY
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    s3_keys_file: Option<PathBuf>,
    /// What S3 requests without a signature may do: off, read or write [default: off]
    #[arg(long, value_name = "WHAT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    s3_anonymous: Option<String>,
    /// Address of Arrow Flight SQL in `forebay up`, or off [default: 127.0.0.1:7410]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    flight: Option<String>,
    /// Address that the scheduler of distributed SQL listens at [default: 127.0.0.1:7420]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler_listen: Option<String>,
    /// Address that an executor hands results out at [default: 127.0.0.1:7421]
    #[arg(long, value_name = "HOST:PORT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    executor_listen: Option<String>,
    /// How long SQL, schedulers and executors wait for a coordinator or a scheduler that is away [default: 60s]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<String>,
    /// Tasks that an executor runs at once [default: the machine's cores, shared by its executors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<u16>,
    /// Order in which the scheduler serves jobs of one priority: fifo or fair [default: fifo]
    #[arg(long, value_name = "ORDER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    job_order: Option<String>,
    /// Let tasks fetch what they read, instead of having it brought before they start
    #[arg(long = "no-data-scheduler", action = clap::ArgAction::SetFalse)]
    #[serde(skip_serializing_if = "is_true")]
    data_scheduler: bool,
    /// Where what passes between the stages of a job lies: files of executors, or nodes [default: nodes]
    #[arg(long, value_name = "WHERE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    shuffle: Option<String>,
    /// Storage class of these nodes: dram or disk [default: dram]
    #[arg(long, value_name = "CLASS", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    shuffle_storage_class: Option<String>,
    /// Metadata database: sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE [default: SQLite in the data folder]
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
    /// Capacity of the DRAM tier [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    dram: Option<ByteSize>,
    /// Capacity of the disk tier, 0 for none [default: a quarter of the free disk]
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<ByteSize>,
    /// Don't let processes of this host read the DRAM tier in place
    #[arg(long = "no-in-place", action = clap::ArgAction::SetFalse)]
    #[serde(skip_serializing_if = "is_true")]
    in_place: bool,
    /// How long a worker counts as live without a sign of life [default: 5s]
    #[arg(long, value_name = "DURATION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    /// How replicas follow popularity: getafix, getafix-paper, .., or off [default: getafix]
    #[arg(long, value_name = "POLICY", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    /// Share of a worker's part of the accesses that a plan may go beyond it [default: 5%]
    #[arg(long, value_name = "SHARE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    slack: Option<String>,
    /// Bytes that replicas may take, as a multiple of one replica of everything: what is left of it goes to replicas where
    /// queues are longest [default: 1]
    #[arg(long, value_name = "TIMES", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<String>,
    /// Share of a worker's storage that replicas may take, and from which garbage is collected [default: 80%]
    #[arg(long, value_name = "SHARE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_share: Option<String>,
    /// Period in which accesses are counted and after which replicas are planned [default: 60s]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    /// How often clients ask for workers, mounts and routes [default: 20s]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    poll: Option<String>,
    /// What the worker sends to readers and other workers at most, as in 100MB/s [default: as much as it can]
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    serve_bandwidth: Option<String>,
    /// Share of the tiers that temporary nodes may take; the cache gives way to them [default: 50%]
    #[arg(long, value_name = "PERCENT", hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    temporary_share: Option<String>,
}

/// A flag that is not set must not override the configuration.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_true(value: &bool) -> bool {
    *value
}

/// All flags that override the configuration.
#[derive(Serialize)]
pub(crate) struct Flags<'a> {
    /// Of every command.
    #[serde(flatten)]
    pub(crate) global: &'a GlobalFlags,
    /// Of a role.
    #[serde(flatten)]
    pub(crate) role: Option<&'a RoleFlags>,
}
