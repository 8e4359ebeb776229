//! Shared storage that tests read and write past Forebay, as a folder or on an S3 server.

use std::path::PathBuf;

use forebay_demo::{S3Server, S3Settings};
use tempfile::TempDir;

use super::{Role, forebay};

/// Shared storage that a test can look into: a folder, or a bucket of a real S3 server.
pub enum Bucket {
    Folder(TempDir),
    S3(S3Server),
}

impl Bucket {
    /// An empty folder.
    pub fn folder() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// An empty bucket.
    pub fn s3() -> Self {
        Self::S3(S3Server::start(S3Settings { buckets: vec!["data".into()], ..S3Settings::default() }).unwrap())
    }

    pub fn server(&self) -> &S3Server {
        match self {
            Self::S3(server) => server,
            Self::Folder(_) => panic!("this is a folder"),
        }
    }

    /// Writes so many files of so many rows below a folder, past Forebay.
    pub fn put_csv(&self, folder: &str, files: usize, rows: u64) {
        (0..files).for_each(|file| self.put(&format!("{folder}/{file}.csv"), &csv(rows)));
    }

    /// Writes past Forebay.
    pub fn put(&self, key: &str, data: &[u8]) {
        match self {
            Self::Folder(folder) => {
                let path = folder.path().join(key);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                // Another file under the same name, as careful writers do.
                let draft: PathBuf = folder.path().join(".draft");
                std::fs::write(&draft, data).unwrap();
                std::fs::rename(&draft, &path).unwrap();
            }
            Self::S3(server) => {
                server.put("data", key, data).unwrap();
            }
        }
    }

    /// Mounts it as `lake`.
    #[track_caller]
    pub fn mount(&self, up: &Role) {
        self.mount_with(&up.address(), "lake", &[]);
    }

    /// Mounts it by a name, with flags.
    #[track_caller]
    pub fn mount_with(&self, coordinator: &str, name: &str, flags: &[&str]) {
        match self {
            Self::Folder(folder) => {
                let url = format!("file://{}", folder.path().display());
                forebay(coordinator, &[&["mount", "add", name, &url], flags].concat()).ok();
            }
            Self::S3(server) => {
                let endpoint = server.endpoint();
                forebay(coordinator, &[&["mount", "add", name, "s3://data", "--endpoint", &endpoint], flags].concat()).ok();
            }
        }
    }
}

/// A home with `up` in it, which has the bucket mounted as `lake`, and where its coordinator listens.
#[track_caller]
pub fn lake(bucket: &Bucket) -> (TempDir, Role, String) {
    lake_with(bucket, &[])
}

/// The same of an S3 server that has these files already.
#[track_caller]
pub fn lake_of(files: &[(&str, Vec<u8>)]) -> (TempDir, Role, Bucket) {
    let bucket = Bucket::s3();
    files.iter().for_each(|(key, data)| bucket.put(key, data));
    let (home, up, _) = lake(&bucket);
    (home, up, bucket)
}

#[track_caller]
pub fn lake_with(bucket: &Bucket, flags: &[&str]) -> (TempDir, Role, String) {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up_with(home.path(), flags);
    bucket.mount(&up);
    let address = up.address();
    (home, up, address)
}

/// A CSV file of `rows` rows: a number, its square, and text.
pub fn csv(rows: u64) -> Vec<u8> {
    let mut text = String::from("n,square,word\n");
    for n in 0..rows {
        text += &format!("{n},{},word-{}\n", n * n, n % 7);
    }
    text.into_bytes()
}
