//! On SQLite.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use forebay_metadata::Metadata;
use forebay_types::{ErrorKind, MountOptions};
use sqlx::{Connection, Row};
use tempfile::TempDir;

use crate::conformance::{self, name};

/// A folder whose name needs quoting in URLs, and the URL of a database in a folder below it that is not there yet.
fn fresh() -> (TempDir, String) {
    let folder = tempfile::Builder::new().prefix("a b%3F").tempdir().expect("a folder");
    let url = format!("sqlite:{}/data/metadata.db", folder.path().display());
    (folder, url)
}

/// The same database, as `sqlx` wants its name.
fn quoted(url: &str) -> String {
    url.replace('%', "%25").replace(' ', "%20").replace("sqlite:", "sqlite://")
}

macro_rules! conforms {
    ($($check:ident),*) => {$(
        #[tokio::test]
        async fn $check() {
            let (_folder, url) = fresh();
            conformance::$check(&url).await;
        }
    )*};
}

conforms!(
    mounts_are_kept,
    mount_ids_are_never_reused,
    pins_are_byte_exact,
    tables_are_kept,
    checkpoints_replace_the_one_before,
    many_open_and_write_at_once
);

/// These look into the database beside Forebay, with a plain path.
fn plain() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite://{}/metadata.db", folder.path().display());
    (folder, url)
}

#[tokio::test]
async fn a_restored_copy_gives_no_mount_s_number_again() {
    let (_folder, url) = plain();
    conformance::a_restored_copy_gives_no_mount_s_number_again(&url).await;
}

#[tokio::test]
async fn epochs_grow_and_fence() {
    let (_folder, url) = plain();
    conformance::epochs_grow_and_fence(&url).await;
}

#[tokio::test]
async fn a_copy_of_the_file_alone_has_what_was_written() {
    let (folder, url) = plain();
    let metadata = Metadata::open(&url).await.unwrap();
    metadata.acquire_epoch().await.unwrap();
    let mount = metadata.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(folder.path().join("metadata.db"), &copy).unwrap();
    let copied = Metadata::open(&format!("sqlite://{}", copy.display())).await.unwrap();
    assert_eq!(copied.mounts().await.unwrap(), [mount]);
    copied.close().await;
    metadata.close().await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_untouched() {
    let (_folder, url) = plain();
    conformance::a_newer_schema_is_refused_untouched(&url).await;
}

#[tokio::test]
async fn only_one_leads() {
    let (_folder, url) = fresh();
    conformance::only_one_leads(&url, ErrorKind::Invalid).await;
}

#[tokio::test]
async fn the_second_process_is_told_who_holds_the_folder() {
    let (_folder, url) = fresh();
    let (first, second) = (Metadata::open(&url).await.unwrap(), Metadata::open(&url).await.unwrap());
    first.acquire_epoch().await.unwrap();
    let error = second.acquire_epoch().await.unwrap_err();
    assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(error.message().contains("choose another data folder"), "{error}");
}

#[tokio::test]
async fn files_are_for_this_user_only_and_written_ahead() {
    let (folder, url) = fresh();
    let metadata = Metadata::open(&url).await.unwrap();
    metadata.acquire_epoch().await.unwrap();
    metadata.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();
    let mode = |path: &Path| path.metadata().expect("is there").permissions().mode() & 0o777;
    let data = folder.path().join("data");
    assert_eq!(mode(&data), 0o700);
    for file in ["metadata.db", "metadata.db-wal", "metadata.db-shm", "metadata.lock"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
    let mut connection = sqlx::AnyConnection::connect(&quoted(&url)).await.unwrap();
    let row = sqlx::query("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<String, _>(0), "wal");
}

#[tokio::test]
async fn a_relative_path_is_taken_from_the_working_folder() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = Path::new(folder.path().file_name().unwrap()).join("metadata.db");
    let metadata = Metadata::open(&format!("sqlite:{}", path.display())).await.unwrap();
    assert!(path.exists());
    assert!(Path::new(&metadata.shown()).is_absolute());
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "these are notes, and no database\n".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let error = Metadata::open(&format!("sqlite:{}", path.display())).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("notes.txt"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let error = Metadata::open(&format!("sqlite:{}", folder.path().display())).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let error = Metadata::open(&format!("sqlite:{}/below/x.db", path.display())).await.map(|_| ()).unwrap_err();
    assert!(error.message().contains("notes.txt"), "{error}");
}
