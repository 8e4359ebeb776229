//! What whoever opens a mount's storage may say: how patient it is, and with what it signs.

use std::time::Duration;

/// How patient a [`Storage`](crate::Storage) is.
#[derive(Clone, Debug)]
pub struct StorageSettings {
    /// Longest time in which nothing moves on a request's connection. Waiting for the bandwidth bound doesn't count.
    pub request_timeout: Duration,
    /// Longest time without progress, retries included.
    pub deadline: Duration,
    /// Most retries without progress.
    pub max_retries: u32,
    /// Signs S3 requests instead of what the environment or a profile holds; for programs that bring their own storage.
    pub access_key: Option<AccessKey>,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self { request_timeout: Duration::from_secs(30), deadline: Duration::from_secs(120), max_retries: 8, access_key: None }
    }
}

/// An S3 access key and its secret, which it never shows.
#[derive(Clone)]
pub struct AccessKey {
    /// The key's id.
    pub id: String,
    /// The secret.
    pub secret: String,
}

forebay_types::shown!(AccessKey);
