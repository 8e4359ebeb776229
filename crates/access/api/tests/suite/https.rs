//! The port over TLS, and who keeps nobody out of it.

use std::time::Duration;

use forebay_api::{Http, HttpSettings, Readers, Readiness};
use forebay_testbed::{Authority, until_asked};
use forebay_transport::TlsSettings;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

async fn serve(tls: Option<TlsSettings>) -> Http {
    serve_so_many(1000, tls).await
}

async fn serve_so_many(connections_max: usize, tls: Option<TlsSettings>) -> Http {
    let readiness = Readiness::of(["worker"]);
    readiness.started("worker", || Ok(()));
    let (address, readers) = ("127.0.0.1:0".into(), Readers::new(Vec::new()));
    Http::start(HttpSettings { address, tls, readers, metrics_are_open: true, readiness, connections_max }).await.unwrap()
}

/// What comes back, as text; as far as it comes.
async fn get(mut socket: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let mut answer = Vec::new();
    let asked = socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes()).await;
    if asked.is_ok() {
        let read = tokio::time::timeout(Duration::from_secs(30), socket.read_to_end(&mut answer)).await;
        // A server that closes without a word of TLS gives an error behind the whole answer.
        let _ = read.expect("an answer, or an end");
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn is(answer: &str, status: u16, body: &str) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_metrics_are_told_over_tls_and_nothing_without() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "others"));
    let http = serve(Some(ours.server(folder.path()))).await;
    assert!(http.url().starts_with("https://127.0.0.1:"), "{}", http.url());
    let at = http.address();
    let told = [
        ("/healthz", "ok\n"),
        ("/readyz", "ready\n"),
        ("/metrics", "forebay_build_info"),
        ("/metrics", "\nforebay_process_tasks "),
    ];
    for (path, body) in told {
        let answer = get(ours.connect(at, None).await.unwrap(), path).await;
        assert!(is(&answer, 200, body), "{path}: {answer}");
    }
    assert!(others.connect(at, None).await.is_err(), "its certificate is another one's");
    let plain = get(TcpStream::connect(at).await.unwrap(), "/healthz").await;
    assert!(!plain.contains("HTTP"), "{plain}");
    // Settings of one who only connects.
    let open = serve(Some(TlsSettings { ca: Some(ours.file.clone()), ..TlsSettings::default() })).await;
    assert!(open.url().starts_with("http://"));
    assert!(is(&get(TcpStream::connect(open.address()).await.unwrap(), "/healthz").await, 200, "ok\n"));
    let mut missing = ours.server(folder.path());
    missing.key = Some(folder.path().join("none.pem"));
    let (address, readers) = ("127.0.0.1:0".into(), Readers::new(Vec::new()));
    let (tls, readiness) = (Some(missing), Readiness::of(["worker"]));
    let settings = HttpSettings { address, tls, readers, metrics_are_open: true, readiness, connections_max: 1 };
    assert!(Http::start(settings).await.is_err_and(|error| error.to_string().contains("none.pem")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_ca_of_clients_all_but_health_wants_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["ours", "clients", "others"];
    let [ours, clients, others] = names.map(|name| Authority::new(folder.path(), name));
    let tls = TlsSettings { client_ca: Some(clients.file.clone()), ..ours.server(folder.path()) };
    let http = serve(Some(tls)).await;
    let ask = async |shows: Option<&Authority>, path: &str| match ours.connect(http.address(), shows).await {
        Ok(socket) => get(socket, path).await,
        Err(_) => String::new(),
    };
    for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        assert!(is(&ask(None, path).await, 200, body), "{path} is open by choice");
    }
    for path in ["/metrics", "/api/v1/status", "/", "/healthz/../metrics", "/healthz/"] {
        let answer = ask(None, path).await;
        assert!(is(&answer, 403, "certificate"), "{path}: {answer}");
    }
    assert!(is(&ask(Some(&clients), "/metrics").await, 200, "forebay_build_info"));
    for path in ["/metrics", "/healthz"] {
        let answer = ask(Some(&others), path).await;
        assert!(!answer.contains("HTTP"), "a certificate that nobody knows is worse than none: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_replaced_is_shown_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| Authority::new(folder.path(), name));
    let http = serve(Some(old.server(folder.path()))).await;
    let mut kept = old.connect(http.address(), None).await.unwrap();
    new.server(folder.path());
    until_asked("the new one is shown", async || new.connect(http.address(), None).await.is_ok()).await;
    assert!(old.connect(http.address(), None).await.is_err());
    assert!(is(&get(&mut kept, "/healthz").await, 200, "ok\n"), "what stands goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours");
    for tls in [None, Some(ours.server(folder.path()))] {
        let (is_https, http) = (tls.is_some(), serve(tls).await);
        let mut silent = Vec::new();
        for at in 0..300 {
            let mut socket = TcpStream::connect(http.address()).await.unwrap();
            // Some say something, and never all of it.
            if at % 2 == 0 {
                socket.write_all(if is_https { &[22, 3, 1, 2] } else { b"GET /healthz HTTP/1.1\r\nHost: a\r\n" }).await.unwrap();
            }
            silent.push(socket);
        }
        let asked = async {
            match is_https {
                true => get(ours.connect(http.address(), None).await.unwrap(), "/healthz").await,
                false => get(TcpStream::connect(http.address()).await.unwrap(), "/healthz").await,
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(20), asked).await.expect("an answer in time");
        assert!(is(&answer, 200, "ok\n"), "{answer}");
        let gone = ended_of(&mut silent).await;
        assert!((1..200).contains(&gone), "the oldest give way, and no more than are in the way: {gone}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_when_too_many_are_served_is_told_so_and_that_the_process_is_there() {
    let http = serve_so_many(4, None).await;
    let asked = async |path: &str| get(TcpStream::connect(http.address()).await.unwrap(), path).await;
    let mut served = Vec::new();
    // One host has half of them.
    for _ in 0..2 {
        let mut socket = TcpStream::connect(http.address()).await.unwrap();
        socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        socket.read_exact(&mut head).await.unwrap();
        assert_eq!(head, *b"HTTP/1.1 200");
        served.push(socket);
    }
    let refused = asked("/metrics").await;
    assert!(is(&refused, 503, "too many connections") && refused.contains("connection: close"), "{refused}");
    assert!(is(&asked("/healthz").await, 200, "ok\n"), "whoever restarts processes is not told otherwise");
    let (mut posts, mut told) = (TcpStream::connect(http.address()).await.unwrap(), String::new());
    posts.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n").await.unwrap();
    posts.write_all("x".repeat(1 << 20).as_bytes()).await.expect("it is taken");
    posts.read_to_string(&mut told).await.unwrap();
    assert!(is(&told, 503, "too many connections"), "{told}");
    drop(served);
    until_asked("their places are free again", async || is(&asked("/metrics").await, 200, "forebay_build_info")).await;
}

/// How many of the connections were ended.
async fn ended_of(silent: &mut [TcpStream]) -> usize {
    let mut gone = 0;
    for socket in silent {
        let read = tokio::time::timeout(Duration::from_millis(2), socket.read_u8()).await;
        gone += usize::from(read.is_ok());
    }
    gone
}
