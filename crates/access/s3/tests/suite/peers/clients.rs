//! The clients that people use, as they come from their registries. `.ci/test-deps` installs them.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::rig::cluster::{Cluster, ID, SECRET, gateway_settings};

/// Where `.ci/test-deps` puts what is not part of the checkout.
fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/forebay");
    std::env::var_os("FOREBAY_CACHE").map_or_else(home, PathBuf::from)
}

pub fn tool(name: &str) -> PathBuf {
    let places = [cache().join("s3-clients/bin").join(name), cache().join("bin").join(name)];
    places.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("{name} is not installed: run `make test-deps`"))
}

pub fn command(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command
        .env("AWS_ACCESS_KEY_ID", ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("FOREBAY_CACHE", cache());
    command
}

pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

pub async fn run(mut command: Command) -> String {
    let shown = format!("{command:?}");
    let output: Output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}\n{text}");
    text
}

async fn python(name: &str) {
    let (cluster, _s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let mut command = command(tool("python"));
    command.arg(script(name)).arg(cluster.endpoint());
    run(command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boto3() {
    python("with_boto3.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_data_with_boto3() {
    python("with_temporary_data.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyarrow() {
    python("with_pyarrow.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polars() {
    python("with_polars.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pandas() {
    python("with_pandas.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duckdb_httpfs() {
    python("with_duckdb.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spark_s3a() {
    python("with_spark.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_cli() {
    shell("with_aws_cli.sh", &["aws"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s5cmd() {
    shell("with_s5cmd.sh", &["s5cmd"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rclone() {
    shell("with_rclone.sh", &["rclone"]).await;
}

/// A script with the endpoint and the paths of the tools as arguments, in an empty folder.
async fn shell(name: &str, tools: &[&str]) {
    let (cluster, _s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = command("/bin/sh".into());
    command.arg(script(name)).arg(cluster.endpoint()).args(tools.iter().map(|name| tool(name))).current_dir(folder.path());
    run(command).await;
}
