//! What a gateway is told: where it listens, and whom it lets in.

use std::fmt;
use std::sync::Arc;

use forebay_transport::TlsSettings;
use forebay_types::{Grant, Mount, MountId, MountName, MountOptions, Role, Scope};

/// How the gateway listens, and whom it lets in. Start from [`GatewaySettings::new`].
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// `host:port` to listen at.
    pub listen: String,
    /// Who may come in.
    pub keys: Vec<AccessRule>,
    /// What requests without a signature may do.
    pub anonymous: Anonymous,
    /// Hosts below which a bucket's name may stand: with `s3.local`, `lake.s3.local` is bucket `lake`.
    pub domains: Vec<String>,
    /// The region that is told to clients. Signatures for any region are taken.
    pub region: String,
    /// HTTPS instead of HTTP.
    pub tls: Option<TlsSettings>,
    /// Connections at once; more are told to come later (`SlowDown`), and so is a host that has as many as are left.
    pub connections_max: usize,
    /// Bytes that uploads to temporary data and documents of requests hold in this process at once, of the budget that all requests
    /// to the process have; half of it where it is not said, and at most. More wait for 10 s, then are refused (`SlowDown`).
    pub upload_bytes_max: Option<u64>,
    /// Bytes that parts of uploads which are not completed take on disk at once, in temporary files of this machine: on mounts whose
    /// store has no such uploads, and of temporary data.
    pub upload_disk_bytes_max: u64,
    /// Configuration of buckets may be changed through the gateway: policies, lifecycles, access lists.
    pub bucket_configuration: bool,
    /// Where clients may make buckets; none for nowhere.
    pub new_buckets: Option<NewBuckets>,
}

/// Where new buckets are made: each becomes a mount. Access keys that see all mounts and may write make and remove them.
#[derive(Clone, Debug)]
pub struct NewBuckets {
    /// `s3://`: buckets of the same name; `s3://BUCKET/PREFIX/` and the like: what is below a prefix of that name;
    /// `file:///FOLDER`: folders.
    pub url: String,
    /// Where the store is, as in a mount's options.
    pub endpoint: Option<String>,
}

impl NewBuckets {
    /// The mount that a bucket of this name is.
    pub(crate) fn mount(&self, name: MountName) -> Mount {
        let slash = if self.url.ends_with('/') { "" } else { "/" };
        let end = if self.is_whole_buckets() || self.url.starts_with("file:") { "" } else { "/" };
        let url = format!("{}{slash}{name}{end}", self.url);
        let options = MountOptions { endpoint: self.endpoint.clone(), ..MountOptions::default() };
        Mount { id: MountId(0), name, url, options }
    }

    /// Each is a bucket of its own at the store.
    pub(crate) fn is_whole_buckets(&self) -> bool {
        self.url.trim_end_matches('/') == "s3:"
    }
}

impl GatewaySettings {
    /// Nobody may come in yet.
    pub fn new(listen: impl Into<String>) -> Self {
        Self {
            listen: listen.into(),
            keys: Vec::new(),
            anonymous: Anonymous::Off,
            domains: vec!["localhost".into()],
            region: "us-east-1".into(),
            tls: None,
            connections_max: 20_000,
            upload_bytes_max: None,
            upload_disk_bytes_max: 16 << 30,
            bucket_configuration: false,
            new_buckets: None,
        }
    }
}

/// What requests without a signature may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// Nothing.
    #[default]
    Off,
    /// Read.
    Read,
    /// Read and write.
    Write,
}

/// One access key and what it may do.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// The access key's id.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
    /// What it lets its holder do.
    pub grant: Grant,
}

impl AccessRule {
    /// A key that may read and write everywhere.
    pub fn new(id: impl Into<String>, secret: impl AsRef<str>) -> Self {
        Self { id: id.into(), secret: Secret::new(secret), grant: Grant::everywhere(Role::Write) }
    }

    /// The same key, which may not write.
    pub fn read_only(self) -> Self {
        Self { grant: Grant { role: Role::Read, ..self.grant }, ..self }
    }

    /// The same key for these mounts only.
    pub fn only(self, mounts: Vec<MountName>) -> Self {
        Self { grant: Grant { scope: Scope::Only { mounts, temporary: false }, ..self.grant }, ..self }
    }
}

/// A secret, which it never shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes it.
    pub fn new(secret: impl AsRef<str>) -> Self {
        Self(secret.as_ref().into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
