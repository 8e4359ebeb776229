//! Credentials that the machine hands out, by a server in its place.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use forebay_demo::{ACCESS_KEY, SECRET_KEY};

use crate::support::{Bucket, Role, csv, forebay};

/// What an instance and a container are told of their role: good for two seconds, so that all who need it soon ask again.
struct Machine {
    address: SocketAddr,
    /// How often credentials were handed out.
    asked: Arc<AtomicUsize>,
}

impl Machine {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                // Who goes away gets no answer.
                std::thread::spawn(move || drop(answer(stream, &counted)));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn answer(mut stream: TcpStream, asked: &AtomicUsize) -> std::io::Result<()> {
    let mut head = Vec::new();
    for line in BufReader::new(&stream).lines() {
        match line? {
            line if line.is_empty() => break,
            line => head.push(line),
        }
    }
    let path = head.first().and_then(|first| first.split(' ').nth(1)).unwrap_or_default().to_string();
    let shows = |header: &str| head.iter().any(|line| line.eq_ignore_ascii_case(header));
    let (status, text) = match path.as_str() {
        "/latest/api/token" => ("200 OK", "of-this-session".to_string()),
        "/latest/meta-data/iam/security-credentials/" => ("200 OK", "reader".to_string()),
        "/latest/meta-data/iam/security-credentials/reader" if shows("x-aws-ec2-metadata-token: of-this-session") => {
            ("200 OK", credentials(asked))
        }
        "/container" if shows("authorization: of-the-container") => ("200 OK", credentials(asked)),
        _ => ("403 Forbidden", String::new()),
    };
    let length = text.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
}

fn credentials(asked: &AtomicUsize) -> String {
    asked.fetch_add(1, SeqCst);
    let until = chrono::Utc::now() + Duration::from_secs(2);
    let until = until.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (id, secret) = (ACCESS_KEY, SECRET_KEY);
    serde_json::json!({"AccessKeyId": id, "SecretAccessKey": secret, "Token": "session", "Expiration": until}).to_string()
}

#[test]
fn what_the_machine_hands_out_is_taken_and_renewed_while_a_worker_runs() {
    for kind in ["instance", "container"] {
        let (home, bucket, machine) = (tempfile::tempdir().unwrap(), Bucket::s3(), Machine::start());
        bucket.put("a.csv", &csv(10));
        bucket.put("b.csv", &csv(20));
        let token = home.path().join("container-token");
        fs::write(&token, "of-the-container").unwrap();
        let (address, token) = (machine.address, token.display());
        let variables = match kind {
            "instance" => format!("export AWS_METADATA_ENDPOINT=http://{address}"),
            _ => format!(
                "export AWS_CONTAINER_CREDENTIALS_FULL_URI=http://{address}/container AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE={token}"
            ),
        };
        let up = Role::up_after(home.path(), &format!("unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY && {variables}"));
        bucket.mount(&up);
        let at = up.address();
        assert_eq!(forebay(&at, &["cat", "/lake/a.csv"]).ok().stdout, csv(10), "{kind}");
        let asked = machine.asked();
        assert!(asked > 0, "{kind}: {}", up.log());
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(forebay(&at, &["cat", "/lake/b.csv"]).ok().stdout, csv(20), "{kind}");
        assert!(machine.asked() > asked, "{kind}: those of before have run out");
    }
}
