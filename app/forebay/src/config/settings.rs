use std::path::PathBuf;
use std::time::Duration;

use figment::value::magic::RelativePathBuf;
use forebay_placement::Policy;
use forebay_types::{BitRate, ByteSize, Error, format_duration, parse_duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration as text with a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period(pub(crate) Duration);

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A share as text, as in `5%`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percent(pub(crate) f64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let number = number.filter(|number| (0.0..=100.0).contains(number));
        let number = number.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no share: write it as in 5%")))?;
        Ok(Self(number / 100.0))
    }
}

/// A multiple as text, as in `1.5`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times(pub(crate) f64);

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A file and a variable may have a number, a flag has a text.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        let (number, text) = match Written::deserialize(deserializer)? {
            Written::Number(number) => (Some(number), number.to_string()),
            Written::Text(text) => (text.parse().ok(), text),
        };
        let number = number.filter(|number| (1.0..=1e6).contains(number));
        number.map(Self).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no multiple from 1: write it as in 1.5")))
    }
}

/// Folders, separated by commas; in a file a list too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders(pub(crate) Vec<PathBuf>);

impl std::fmt::Display for Folders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(","))
    }
}

impl Serialize for Folders {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Folders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            List(Vec<String>),
            Text(String),
        }
        let list = match Written::deserialize(deserializer)? {
            Written::List(list) => list,
            Written::Text(text) => text.split(',').map(str::to_string).collect(),
        };
        let folders = list.iter().map(|folder| PathBuf::from(folder.trim())).filter(|folder| !folder.as_os_str().is_empty());
        let folders = folders.collect::<Vec<_>>();
        match folders.iter().find(|folder| !folder.is_absolute()) {
            Some(folder) => Err(serde::de::Error::custom(format!("{folder:?} is no whole path: write it as in /srv/data"))),
            None => Ok(Self(folders)),
        }
    }
}

/// Tasks that an executor runs at once, 1 to 1024.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots(pub(crate) u16);

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A file and a flag have a number, a variable has a text.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(i64),
            Text(String),
        }
        let (number, text) = match Written::deserialize(deserializer)? {
            Written::Number(number) => (Some(number), number.to_string()),
            Written::Text(text) => (text.parse().ok(), text),
        };
        let number = number.filter(|number| (1..=1024).contains(number));
        let number = number.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no number from 1 to 1024")))?;
        Ok(Self(number as u16))
    }
}

/// The label of where a worker is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Label(pub(crate) String);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let location: forebay_client::Location = text.parse().map_err(serde::de::Error::custom)?;
        if location.is_anywhere() {
            return Err(serde::de::Error::custom(format!("{text} is no place: name the worker's host or rack")));
        }
        Ok(Self(text))
    }
}

/// How replicas are planned, or `off`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing(pub(crate) Option<Policy>);

impl std::fmt::Display for Placing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(policy) => policy.fmt(f),
            None => f.write_str("off"),
        }
    }
}

impl Serialize for Placing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Placing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|policy| Self(Some(policy)))
            .map_err(|error: Error| serde::de::Error::custom(format!("{}, or off", error.message())))
    }
}

/// In which order jobs of one priority are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobOrder {
    Fifo,
    Fair,
}

impl std::fmt::Display for JobOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fifo => "fifo",
            Self::Fair => "fair",
        })
    }
}

/// Where what passes between the stages of a job lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShufflePlace {
    Nodes,
    Files,
}

impl std::fmt::Display for ShufflePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nodes => "nodes",
            Self::Files => "files",
        })
    }
}

/// Of temporary nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeClass {
    Dram,
    Disk,
}

impl std::fmt::Display for NodeClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dram => "dram",
            Self::Disk => "disk",
        })
    }
}

/// The configuration as files, variables and flags write it; [`super::Config`] is what becomes of it.
///
/// One flat list of keys, so that a key, its variable and its flag are the same word: `data-dir`, `FOREBAY_DATA_DIR`,
/// `--data-dir`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) coordinator: String,
    pub(crate) coordinator_listen: Option<String>,
    pub(crate) scheduler: Option<String>,
    pub(crate) wait: Period,
    pub(crate) scheduler_listen: String,
    pub(crate) executor_listen: String,
    pub(crate) slots: Option<Slots>,
    pub(crate) job_order: JobOrder,
    pub(crate) data_scheduler: bool,
    pub(crate) shuffle: ShufflePlace,
    pub(crate) shuffle_storage_class: NodeClass,
    pub(crate) worker_listen: String,
    pub(crate) advertise: Option<String>,
    pub(crate) location: Option<Label>,
    pub(crate) http: String,
    pub(crate) metrics_anonymous: bool,
    pub(crate) s3: String,
    pub(crate) s3_access_key: Option<String>,
    pub(crate) s3_secret_key: Option<String>,
    pub(crate) s3_keys_file: Option<RelativePathBuf>,
    pub(crate) s3_anonymous: String,
    pub(crate) s3_domain: String,
    pub(crate) s3_region: String,
    pub(crate) s3_new_buckets: Option<String>,
    pub(crate) s3_new_buckets_endpoint: Option<String>,
    pub(crate) s3_bucket_configuration: bool,
    pub(crate) flight: String,
    pub(crate) data_dir: RelativePathBuf,
    pub(crate) metadata: Option<String>,
    pub(crate) dram: Option<ByteSize>,
    pub(crate) disk: Option<ByteSize>,
    pub(crate) in_place: bool,
    pub(crate) lease: Period,
    pub(crate) placement: Placing,
    pub(crate) slack: Percent,
    pub(crate) budget: Times,
    pub(crate) storage_share: Percent,
    pub(crate) window: Period,
    pub(crate) poll: Period,
    pub(crate) serve_bandwidth: Option<BitRate>,
    pub(crate) temporary_share: Percent,
    pub(crate) query_history: bool,
    pub(crate) sql_memory: Option<ByteSize>,
    pub(crate) sql_spill: Option<ByteSize>,
    pub(crate) file_roots: Option<Folders>,
    pub(crate) direct_stores: bool,
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<RelativePathBuf>,
    pub(crate) cluster_secret: Option<String>,
    pub(crate) cluster_secret_file: Option<RelativePathBuf>,
    pub(crate) tls_cert: Option<RelativePathBuf>,
    pub(crate) tls_key: Option<RelativePathBuf>,
    pub(crate) tls_ca: Option<RelativePathBuf>,
    pub(crate) tls_client_ca: Option<RelativePathBuf>,
    pub(crate) log: Option<String>,
    pub(crate) audit_log: Option<RelativePathBuf>,
}

/// What stands when nothing else is said.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Defaults {
    coordinator: &'static str,
    wait: Period,
    scheduler_listen: &'static str,
    executor_listen: &'static str,
    job_order: JobOrder,
    data_scheduler: bool,
    shuffle: ShufflePlace,
    shuffle_storage_class: NodeClass,
    worker_listen: &'static str,
    http: &'static str,
    metrics_anonymous: bool,
    s3: &'static str,
    s3_anonymous: &'static str,
    s3_domain: &'static str,
    s3_region: &'static str,
    s3_bucket_configuration: bool,
    flight: &'static str,
    data_dir: PathBuf,
    in_place: bool,
    lease: Period,
    placement: Placing,
    slack: Percent,
    budget: Times,
    storage_share: Percent,
    window: Period,
    poll: Period,
    temporary_share: Percent,
    query_history: bool,
    direct_stores: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            coordinator: "127.0.0.1:7400",
            wait: Period(Duration::from_secs(60)),
            scheduler_listen: "127.0.0.1:7420",
            executor_listen: "127.0.0.1:7421",
            job_order: JobOrder::Fifo,
            data_scheduler: true,
            shuffle: ShufflePlace::Nodes,
            shuffle_storage_class: NodeClass::Dram,
            worker_listen: "127.0.0.1:7401",
            http: "auto",
            metrics_anonymous: false,
            s3: "127.0.0.1:7490",
            s3_anonymous: "off",
            s3_domain: "localhost",
            s3_region: "us-east-1",
            s3_bucket_configuration: false,
            flight: "127.0.0.1:7410",
            data_dir: "./forebay-data".into(),
            in_place: true,
            lease: Period(Duration::from_secs(5)),
            placement: Placing(Some(Policy::default())),
            slack: Percent(0.05),
            budget: Times(1.0),
            storage_share: Percent(0.8),
            window: Period(Duration::from_secs(60)),
            poll: Period(Duration::from_secs(20)),
            temporary_share: Percent(0.5),
            query_history: true,
            direct_stores: false,
        }
    }
}

/// The keys that are true or false.
pub(super) const SWITCHES: [&str; 6] =
    ["data-scheduler", "direct-stores", "in-place", "metrics-anonymous", "query-history", "s3-bucket-configuration"];

/// All keys, in the order in which `forebay config` shows them, with what each is for.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("coordinator", "address of the coordinator: where clients and workers look for it"),
    ("coordinator-listen", "address that the coordinator listens at"),
    ("scheduler", "address of the scheduler of distributed SQL, or off; not set: the one that the coordinator knows, if any"),
    ("wait", "how long SQL, schedulers and executors wait for a coordinator or a scheduler that is away"),
    ("scheduler-listen", "address that the scheduler listens at"),
    ("executor-listen", "address that an executor hands results out at"),
    ("slots", "tasks that an executor runs at once"),
    ("job-order", "order in which the scheduler serves jobs of one priority: fifo or fair"),
    ("data-scheduler", "whether the input of tasks is brought before they start"),
    (
        "shuffle",
        "where what passes between the stages of a job lies: files of executors, or nodes (temporary ones, with the workers)",
    ),
    ("shuffle-storage-class", "storage class of these nodes: dram, or disk to keep them off memory"),
    ("worker-listen", "address that the worker's data plane listens at"),
    ("advertise", "host:port that clients reach the worker at, where it isn't the one it listens at"),
    ("location", "where the worker is, as temporary nodes may ask for: the label of a host or rack; not set: the host's name"),
    (
        "http",
        "address of /metrics and /healthz, or off; auto: 127.0.0.1, 7480, or 7481 for an executor, 7482 for a scheduler, 7483 for a gateway",
    ),
    ("metrics-anonymous", "whether /metrics answers who shows no token; /healthz always does"),
    ("s3", "address of the S3 gateway, or off; it needs a key, or anonymous access"),
    ("s3-access-key", "id of an access key of the S3 gateway"),
    ("s3-secret-key", "its secret"),
    ("s3-keys-file", "TOML file with more access keys, and with what each may do"),
    ("s3-anonymous", "what S3 requests without a signature may do: off, read or write"),
    ("s3-domain", "host below which a bucket's name may stand, as in lake.s3.local"),
    ("s3-region", "region that S3 clients are told"),
    ("s3-new-buckets", "where S3 clients may make buckets, as in s3:// or file:///srv/buckets; each becomes a mount"),
    ("s3-new-buckets-endpoint", "URL of the S3 service that makes them, where it isn't the cloud's own"),
    ("s3-bucket-configuration", "whether S3 clients may change policies, versioning and the like of buckets"),
    ("flight", "address of Arrow Flight SQL, or off"),
    ("data-dir", "folder of the tiers and of the embedded metadata"),
    ("metadata", "metadata database: sqlite:FILE or postgres://.."),
    ("dram", "capacity of the DRAM tier"),
    ("disk", "capacity of the disk tier; 0 for none"),
    ("in-place", "whether processes of the same user on the same host read the DRAM tier in place"),
    ("lease", "how long a worker counts as live without a sign of life"),
    ("placement", "how replicas follow popularity: getafix, getafix-paper, another policy of `forebay plan`, or off"),
    ("slack", "share of a worker's part of the accesses that a plan may go beyond it"),
    ("budget", "bytes of replicas as a multiple of one replica of everything: what is left of it goes where queues are longest"),
    ("storage-share", "share of a worker's storage that replicas may take, and from which garbage is collected"),
    ("window", "period in which accesses are counted and after which replicas are planned"),
    ("poll", "how often clients ask for workers, mounts and routes"),
    ("serve-bandwidth", "what a worker sends to readers and other workers at most, as in 100MB/s"),
    ("temporary-share", "share of the tiers that temporary nodes may take; the cache gives way to them"),
    (
        "query-history",
        "whether `forebay sql` remembers statements on this account, for its prompt and for `forebay table suggest`",
    ),
    ("sql-memory", "memory for what queries of this process hold; beyond it they spill to disk, and what can't spill fails"),
    ("sql-spill", "disk that they may spill to, in the data folder"),
    ("file-roots", "folders, separated by commas, whose files SQL of servers may read and write beside mounts; not set: none"),
    ("direct-stores", "whether SQL of servers may read and write buckets that no mount covers, with their credentials"),
    (
        "token",
        "what this process shows, as `forebay token add` printed it; of a coordinator, a text by which an administrator is let in",
    ),
    ("token-file", "file that holds the token"),
    ("cluster-secret", "what coordinator, workers, schedulers and executors on several machines know each other by"),
    ("cluster-secret-file", "file that holds it"),
    ("tls-cert", "PEM file with the certificate that this process shows"),
    ("tls-key", "PEM file with its private key"),
    ("tls-ca", "PEM file with the authority that certificates are checked against"),
    (
        "tls-client-ca",
        "PEM file with the authority of clients' certificates: what listens with tls-cert lets in who shows one of it only",
    ),
    ("log", "what is logged, as in info or forebay_worker=debug"),
    ("audit-log", "file that gets a line of JSON for whatever changes something or is refused here; not set: none"),
];
