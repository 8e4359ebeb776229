//! The ports of scheduler and executors ask for the cluster's token, and speak TLS where the cluster does.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use forebay_client::Security;
use forebay_distributed::Cluster;
use forebay_testbed::Authority;
use forebay_transport::{Guarded, TlsSettings};
use forebay_types::{ErrorKind, MountOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Bed, rows};

/// A certificate for loopback, and who issued it, in files that are always the same ones of a folder.
fn issue(authority: &Authority, folder: &Path) -> TlsSettings {
    let ca = folder.join("ca.pem");
    fs::copy(&authority.file, &ca).unwrap();
    TlsSettings { ca: Some(ca), ..authority.server(folder) }
}

/// Whether a port lets in who knows the secret, and has this for TLS.
async fn lets_in(port: SocketAddr, tls: &TlsSettings) -> bool {
    let security = Security::owner(SECRET).unwrap().with_tls(Some(tls.clone()));
    Guarded::connect(&port.to_string(), &security).await.is_ok()
}

const SECRET: &str = "a secret of this cluster";
/// A join: results go from executor to executor too.
const SQL: &str = "select l_shipmode, count(*) from lineitem, orders where l_orderkey = o_orderkey group by l_shipmode";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_behind_token_and_tls_answers_its_own_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let tls = issue(&Authority::new(folder.path(), "ours"), folder.path());
    let security = Security::owner(SECRET).unwrap().with_tls(Some(tls));
    let bed = Bed::secured(2, MountOptions::default(), true, security.clone()).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    assert_eq!(rows(&cluster, SQL).await, rows(&here, SQL).await);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1);

    let scheduler = bed.scheduler_at().to_string();
    let other = Security::owner("a secret of another one").unwrap().with_tls(security.tls.clone());
    for stranger in [other, Security::default()] {
        let error = Cluster::control(&scheduler, &stranger).unwrap().jobs().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Retry | ErrorKind::Denied), "{} {error}", error.kind());
    }
    let executor = bed.executors[0].as_ref().unwrap().address();
    for address in [bed.scheduler_at(), executor] {
        let mut stranger = TcpStream::connect(address).await.unwrap();
        // The beginning of HTTP/2, as Ballista's own clients speak.
        stranger.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut answer = Vec::new();
        // Reset or closed; what TLS says first is an alert.
        let _ = stranger.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(&[0, 0]) && answer.len() < 64, "{address} answers a stranger: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_an_authority_of_clients_only_its_certificates_come_in() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let known = issue(&Authority::new(folder.path(), "ours"), folder.path());
    let ours = TlsSettings { client_ca: known.ca.clone(), ..known.clone() };
    let security = Security::owner(SECRET).unwrap().with_tls(Some(ours));
    let bed = Bed::secured(2, MountOptions::default(), true, security).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    assert_eq!(rows(&cluster, SQL).await, rows(&here, SQL).await, "processes show each other theirs");
    assert_eq!(bed.control().jobs().await.unwrap().len(), 1);
    let none = TlsSettings { cert: None, key: None, ..known.clone() };
    let foreign = TlsSettings { ca: known.ca.clone(), ..issue(&Authority::new(elsewhere.path(), "ours"), elsewhere.path()) };
    for port in [bed.scheduler_at(), bed.executors[0].as_ref().unwrap().address()] {
        assert!(lets_in(port, &known).await, "{port}");
        // The secret is right each time: it is not enough.
        assert!(!lets_in(port, &none).await && !lets_in(port, &foreign).await, "{port}");
        // Nor is the certificate.
        let stranger = Security::owner("a secret of another one").unwrap().with_tls(Some(known.clone()));
        assert!(Guarded::connect(&port.to_string(), &stranger).await.is_err(), "{port}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_certificate_that_was_replaced_is_shown_without_a_restart() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (old, new) = (Authority::new(folder.path(), "ours"), Authority::new(elsewhere.path(), "ours"));
    let settings = issue(&old, folder.path());
    let security = Security::owner(SECRET).unwrap().with_tls(Some(settings.clone()));
    let bed = Bed::secured(2, MountOptions::default(), true, security).await;
    let (here, cluster, standing) = (bed.here(), bed.cluster().await, bed.control());
    bed.tpch(0.01, &[&here, &cluster]).await;
    let answer = rows(&cluster, SQL).await;
    assert_eq!(standing.jobs().await.unwrap().len(), 1);
    let trusts_old = TlsSettings { ca: issue(&old, elsewhere.path()).ca, ..TlsSettings::default() };
    let ports = [bed.scheduler_at(), bed.executors[0].as_ref().unwrap().address(), bed.executors[1].as_ref().unwrap().address()];
    for port in ports {
        assert!(lets_in(port, &trusts_old).await, "{port}");
    }
    issue(&new, folder.path());
    let trusts_new = TlsSettings { cert: None, key: None, ..settings };
    for port in ports {
        let comes_in = async {
            while !lets_in(port, &trusts_new).await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), comes_in).await.expect("the new one is shown");
        assert!(!lets_in(port, &trusts_old).await, "{port}: it trusts the old authority");
    }
    assert_eq!(standing.jobs().await.unwrap().len(), 1, "who was there goes on");
    assert_eq!(
        rows(
            &bed.cluster().await,
            SQL.replace("lineitem", "'/lake/tpch/lineitem/'").replace("orders", "'/lake/tpch/orders/'").as_str()
        )
        .await,
        answer
    );
    // One that can't be used changes nothing.
    fs::write(folder.path().join("cert.pem"), "half a certif").unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    for port in ports {
        assert!(lets_in(port, &trusts_new).await, "{port}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_say_nothing_keep_no_query_from_being_answered() {
    let bed = Bed::start(2).await;
    let here = bed.here();
    rows(&here, "copy (select value as id, value % 97 as k from generate_series(1, 20000) as t(value)) to '/lake/t.parquet'")
        .await;
    let sql = "select k, count(*), sum(id) from '/lake/t.parquet' group by k";
    let expected = rows(&here, sql).await;
    let executors = bed.executors.iter().map(|executor| executor.as_ref().unwrap().address());
    let ports: Vec<SocketAddr> = std::iter::once(bed.scheduler_at()).chain(executors).collect();
    // Port by port: all of them are ends in this process.
    for port in ports {
        let mut silent = Vec::new();
        for _ in 0..300 {
            silent.push(TcpStream::connect(port).await.unwrap());
        }
        // An engine with connections of its own, to the scheduler and for results to the executors.
        let answered = async { rows(&bed.cluster().await, sql).await };
        let found = tokio::time::timeout(Duration::from_secs(60), answered).await;
        assert_eq!(found.unwrap_or_else(|_| panic!("{port}: nobody else comes in")), expected, "{port}");
        drop(silent);
    }
    assert_eq!(bed.control().jobs().await.unwrap().len(), 3, "all of them ran on the cluster");
}
