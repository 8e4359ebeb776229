//! The S3 gateway of the built binary. What S3 clients see of it is tested where it is made.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{Bucket, Role, lake_with};

/// Sends one request without a signature; gives the answer's head, as soon as that is there.
fn ask(up: &Role, head: &str, body: &[u8]) -> String {
    let address = up.place("s3");
    let mut socket = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.write_all(format!("{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes()).unwrap();
    socket.write_all(body).unwrap();
    let mut answer = BufReader::new(socket);
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        assert!(answer.read_line(&mut text).unwrap() > 0, "{text}");
    }
    text
}

#[test]
fn what_was_acknowledged_is_in_the_store_though_the_gateway_is_killed_right_after() {
    let body: Vec<u8> = (0..3_000_000u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    for bucket in [Bucket::s3(), Bucket::folder()] {
        let (_home, up, _) = lake_with(&bucket, &["--s3", "127.0.0.1:0", "--s3-anonymous", "write"]);
        let answer = ask(&up, "PUT /lake/w/a%20b", &body);
        up.kill();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let stored = match &bucket {
            Bucket::Folder(folder) => std::fs::read(folder.path().join("w/a b")).unwrap(),
            Bucket::S3(server) => {
                let home = tempfile::tempdir().unwrap();
                // Another cluster, which knows nothing of the first.
                let up = Role::up(home.path());
                bucket.mount_with(&up.address(), "lake", &[]);
                let copied = crate::support::forebay(&up.address(), &["cat", "/lake/w/a b"]).ok().stdout;
                assert!(server.counters().gets > 0);
                copied
            }
        };
        assert!(stored == body, "{} bytes of {}", stored.len(), body.len());
    }
}

#[test]
fn a_mount_that_is_made_read_only_is_so_at_the_gateway_within_seconds() {
    let bucket = Bucket::s3();
    let (_home, up, at) = lake_with(&bucket, &["--s3", "127.0.0.1:0", "--s3-anonymous", "write"]);
    assert!(ask(&up, "PUT /lake/a", b"hello").starts_with("HTTP/1.1 200"));
    crate::support::forebay(&at, &["mount", "set", "lake", "--read-only"]).ok();
    let began = Instant::now();
    while !ask(&up, "PUT /lake/a", b"again").starts_with("HTTP/1.1 403") {
        assert!(began.elapsed() < Duration::from_secs(8), "it is written to still");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn requests_are_counted() {
    let bucket = Bucket::folder();
    let (_home, up, _) = lake_with(&bucket, &["--s3", "127.0.0.1:0", "--s3-anonymous", "write", "--metrics-anonymous"]);
    assert!(ask(&up, "PUT /lake/a", b"hello").starts_with("HTTP/1.1 200"));
    for _ in 0..2 {
        assert!(ask(&up, "GET /lake/a", b"").starts_with("HTTP/1.1 200"));
    }
    assert!(ask(&up, "GET /lake/none", b"").starts_with("HTTP/1.1 404"));
    let metrics = up.place("metrics");
    let address = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    for line in [
        "forebay_gateway_requests_total{operation=\"put_object\",status=\"200\"} 1",
        "forebay_gateway_requests_total{operation=\"get_object\",status=\"200\"} 2",
        "forebay_gateway_requests_total{operation=\"get_object\",status=\"404\"} 1",
        "forebay_gateway_received_bytes_total 5",
        "forebay_gateway_request_seconds_count{class=\"write\"} 1",
    ] {
        assert!(text.lines().any(|given| given == line), "{line} is not in {text}");
    }
    let count = |cache: &str| {
        let name = format!("forebay_gateway_object_reads_total{{cache=\"{cache}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse::<u32>().unwrap())
    };
    assert_eq!(count("hit") + count("miss"), 2, "{text}");
    assert!(text.contains("forebay_gateway_sent_bytes_total "));
}
