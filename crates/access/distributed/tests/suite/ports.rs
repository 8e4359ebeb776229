//! The ports of scheduler and executors ask for the cluster's token, and speak TLS where the cluster does.

use std::fs;
use std::path::Path;

use forebay_client::Security;
use forebay_distributed::Cluster;
use forebay_transport::TlsSettings;
use forebay_types::{ErrorKind, MountOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Bed, rows};

/// A certificate for loopback, and the authority that signed it.
fn tls(folder: &Path) -> TlsSettings {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_string(), "127.0.0.1".to_string()]).unwrap();
    let cert = params.signed_by(&key, &issuer).unwrap();
    for (name, pem) in [("ca.pem", ca_pem), ("cert.pem", cert.pem()), ("key.pem", key.serialize_pem())] {
        fs::write(folder.join(name), pem).unwrap();
    }
    let file = |name: &str| Some(folder.join(name));
    TlsSettings { ca: file("ca.pem"), cert: file("cert.pem"), key: file("key.pem"), client_ca: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_behind_token_and_tls_answers_its_own_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let security = Security::owner("a secret of this cluster").unwrap().with_tls(Some(tls(folder.path())));
    let bed = Bed::secured(2, MountOptions::default(), true, security.clone()).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    bed.tpch(0.01, &[&here, &cluster]).await;
    // A join: results go from executor to executor too.
    let sql = "select l_shipmode, count(*) from lineitem, orders where l_orderkey = o_orderkey group by l_shipmode";
    assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await);
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
