//! S3 again, against a server that others wrote: versitygw over a directory, or whatever is at
//! `FOREBAY_TEST_S3_ENDPOINT` with a bucket `lake` and the test keys.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forebay_testing::{ACCESS_KEY, SECRET_KEY};
use forebay_types::ErrorKind;
use tempfile::TempDir;

use crate::conformance;
use crate::lab::{key, open, options, patient};

/// The server; a process of ours ends with the test.
struct Gateway {
    process: Option<(Child, TempDir)>,
    endpoint: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some((process, _)) = &mut self.process {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("FOREBAY_VERSITYGW") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where Go and `make test-deps` install, whether that is on the path or not.
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let installed = [home.join("go/bin"), home.join(".cache/forebay/bin")];
    let found = std::env::split_paths(&path).chain(installed).map(|folder| folder.join("versitygw")).find(|path| path.is_file());
    found.expect("the second S3 server is not installed: `make test-deps` does it, or name it in FOREBAY_VERSITYGW")
}

impl Gateway {
    fn find() -> Self {
        match std::env::var("FOREBAY_TEST_S3_ENDPOINT") {
            Ok(endpoint) => Self { process: None, endpoint },
            Err(_) => Self::start(),
        }
    }

    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data/lake", "sidecar"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        // Free now, and nobody else asks for it in the time that the gateway takes to start.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let binary = binary();
        let process = Command::new(&binary)
            .args(["--port", &address.to_string(), "--quiet", "--health", "/_health", "posix", "--sidecar"])
            .arg(folder.path().join("sidecar"))
            .arg(folder.path().join("data"))
            .env("ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("ROOT_SECRET_KEY", SECRET_KEY)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", binary.display()));
        let gateway = Self { process: Some((process, folder)), endpoint: format!("http://{address}") };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "{} does not listen on {address}", binary.display());
            std::thread::sleep(Duration::from_millis(50));
        }
        gateway
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_agrees() {
    let gateway = Gateway::find();
    let run = std::process::id();
    let mount = |prefix: &str| open(&format!("s3://lake/{run}/{prefix}"), options(&gateway.endpoint), patient());
    conformance::objects_come_back_whole(&mount("whole")).await;
    conformance::ranges_are_exact(&mount("ranges")).await;
    conformance::empty_objects_are_objects(&mount("empty")).await;
    conformance::what_is_not_there_is_not_found(&mount("missing")).await;
    conformance::old_versions_conflict(&mount("versions")).await;
    conformance::writes_obey_conditions(&mount("conditions")).await;
    conformance::keys_are_byte_exact(&mount("a b+ä%")).await;
    conformance::dot_segments_are_refused(&mount("dots")).await;
    conformance::folders_are_listed_once(&mount("folders")).await;
    conformance::parts_become_an_object(&mount("parts")).await;
    conformance::uploads_can_be_given_up(&mount("uploads")).await;
    conformance::pages_of(&mount("pages"), 300).await;
    let elsewhere = open("s3://nowhere", options(&gateway.endpoint), patient());
    assert_eq!(elsewhere.check().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(elsewhere.head(&key("x")).await.unwrap_err().kind(), ErrorKind::NotFound);
}
