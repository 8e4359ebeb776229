//! Random requests, good and bad, against what the store would have. `FOREBAY_TEST_FUZZ_SECS` makes it go on for longer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use forebay_testbed::until_asked;
use forebay_types::{ForebayPath, Key, Validate};
use serde_json::json;

use crate::rig::client::{Kept, raw, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

/// How a key goes over the wire: everything but letters and digits encoded.
fn wire(key: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    key.bytes().map(|byte| if keep(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn good_and_bad_requests_in_any_order() {
    let seconds = std::env::var("FOREBAY_TEST_FUZZ_SECS").map_or(6, |text| text.parse().unwrap());
    let seed = std::env::var("FOREBAY_TEST_FUZZ_SEED").map_or_else(|_| rand::random::<u64>() | 1, |text| text.parse().unwrap());
    eprintln!("FOREBAY_TEST_FUZZ_SEED={seed}");
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    // Written by the gateway alone, so that what is at hand is as good as what the store has.
    cluster.mount("still", "s3://other", &s3.endpoint(), |options| options.validate = Validate::Immutable).await;
    let (at, mut dice, mut kept) = (cluster.address(), Dice(seed), Kept::new(cluster.address()));
    let mut known: BTreeMap<(String, String), Vec<u8>> = BTreeMap::new();
    let keys = ["a", "a/", "a//b", "a/b c", "ä/€", "x%2Fy", "+", "a&b=c?d", "~tilde", "con.trol", "...", "a/.../b", "'q\"<>"];
    let begun = Instant::now();
    let (mut rounds, mut slowest) = (0, Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(seconds) {
        rounds += 1;
        let round = Instant::now();
        let (bucket, key) = (dice.pick(&["lake", "still"]), dice.pick(&keys));
        let (path, name) = (format!("/{bucket}/{}", wire(key)), (bucket.to_string(), key.to_string()));
        match dice.roll(9) {
            0 => {
                let size = dice.roll(200_000);
                let body = bytes(dice.0, size);
                let answer = kept.ask(vec![request("PUT", &path).body(body.clone())]).await.remove(0);
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                known.insert(name, body);
            }
            1 => {
                assert_eq!(request("DELETE", &path).send(at).await.status, 204);
                known.remove(&name);
            }
            2 | 3 => {
                // Several at once, now and then.
                let count = if dice.roll(4) == 0 { 1 + dice.roll(6) } else { 1 };
                for answer in kept.ask((0..count).map(|_| request("GET", &path)).collect()).await {
                    match known.get(&name) {
                        Some(body) => assert!(answer.status == 200 && answer.body == *body, "{path}: {}", answer.status),
                        None => assert_eq!(answer.code(), "NoSuchKey", "{path}"),
                    }
                }
            }
            4 => {
                let (a, b) = (dice.roll(250_000), dice.roll(250_000));
                let get = request("GET", &path).header("range", &format!("bytes={a}-{b}"));
                let answer = if dice.roll(2) == 0 { get.send(at).await } else { kept.ask(vec![get]).await.remove(0) };
                match known.get(&name) {
                    None => assert_eq!(answer.code(), "NoSuchKey", "{path}"),
                    Some(body) if a > b => assert!(answer.status == 200 && answer.body == *body),
                    Some(body) if a >= body.len() => {
                        assert_eq!(answer.code(), "InvalidRange", "{path} {a}-{b} of {} bytes: {}", body.len(), answer.head)
                    }
                    Some(body) => {
                        assert!(answer.status == 206 && answer.body == body[a..(b + 1).min(body.len())], "{path} {a}-{b}")
                    }
                }
            }
            5 => {
                let answer = kept.ask(vec![request("GET", &format!("/{bucket}?list-type=2"))]).await.remove(0);
                let count = known.keys().filter(|(in_bucket, _)| in_bucket == bucket).count();
                assert_eq!(answer.text().matches("<Contents>").count(), count, "{}", answer.text());
            }
            6 if bucket == "lake" => {
                // Past the gateway.
                let size = dice.roll(100_000);
                let body = bytes(dice.0, size);
                s3.put("data", key, &body).unwrap();
                known.insert(name, body);
            }
            6 | 7 => {
                let answers = kept.ask(vec![request("HEAD", &path), request("GET", &path)]).await;
                let size = known.get(&name).map(|body| body.len().to_string());
                match &size {
                    Some(size) => assert_eq!(answers[0].header("content-length"), Some(size.as_str()), "{path}"),
                    None => assert_eq!((answers[0].status, answers[1].status), (404, 404), "{path}"),
                }
            }
            _ => nonsense(&mut dice, at, &path).await,
        }
        slowest = slowest.max(round.elapsed());
        if round.elapsed() > Duration::from_secs(2) {
            settle(&cluster).await;
        }
    }
    assert!(rounds > 20, "{rounds} rounds");
    eprintln!("{} reads were at hand", cluster.client.counters().reads_at_hand);
    let (what, slowest_ms) = ("requests to a gateway", slowest.as_millis() as u64);
    let told = json!({
        "fuzz": what, "seconds": seconds, "inputs": rounds, "crashes": 0, "hangs": 0, "slowest_ms": slowest_ms
    });
    println!("{told}");
    assert_eq!(request("GET", "/lake").send(at).await.status, 200);
}

/// A machine that stood still for long has made the coordinator give the worker up. One that is away can't be told of changes,
/// and goes by the mount's rule when it is back: for a mount that never changes, what it knew.
async fn settle(cluster: &Cluster) {
    tokio::time::sleep(Duration::from_secs(8)).await;
    let still = ForebayPath::new("still".parse().unwrap(), Key::new("").unwrap());
    until_asked("the worker comes back", async || !cluster.client.refresh_view().await.unwrap().workers.is_empty()).await;
    cluster.client.refresh(&still).await.unwrap();
}

/// A signed request with something wrong about it: it is refused, whatever it is, and the next one is served.
async fn nonsense(dice: &mut Dice, at: std::net::SocketAddr, path: &str) {
    let method = ["GET", "PUT", "DELETE", "POST", "HEAD", "PATCH", "OPTIONS"][dice.roll(7)];
    let mut text = request(method, path).body("body").head(at).into_bytes();
    match dice.roll(6) {
        // Some bytes changed, beginning with the target, so that it is never the signed request.
        0 | 1 => {
            for _ in 0..1 + dice.roll(20) {
                let place = dice.roll(text.len());
                text[place] = dice.roll(256) as u8;
            }
            text[method.len() + 2] = b'%';
        }
        2 => {
            let traversal = dice.pick(&[
                "/lake/../x",
                "/lake/%2e%2e/x",
                "/lake/a/..%2f..%2fetc",
                "/lake/./x",
                "//",
                "/%2e%2e/lake",
                "/lake%2F..%2Fx",
            ]);
            text = request(method, traversal).head(at).into_bytes();
        }
        3 => {
            // A URL that was good, with something else in it.
            let good = request("GET", path).presigned(at, chrono::TimeDelta::minutes(5));
            let mut bad = format!("GET {good} HTTP/1.1\r\nHost: {at}\r\nRange: bytes=0-99\r\n\r\n").into_bytes();
            let from = 5 + path.len();
            for _ in 0..1 + dice.roll(3) {
                let place = from + dice.roll(bad.len() - from);
                bad[place] = dice.roll(256) as u8;
            }
            // One digit of the signature, so that it is never the right one.
            let mark = b"X-Amz-Signature=";
            if let Some(place) = bad.windows(mark.len()).position(|at| at == mark) {
                bad[place + mark.len()] = b'g';
            }
            text = bad;
        }
        4 => text.truncate(dice.roll(text.len())),
        _ => {
            let junk = dice.pick(&[
                "range: bytes=--",
                "authorization: AWS4-HMAC-SHA256 x",
                "x-amz-date: never",
                "expect: 200-maybe",
                "x-amz-content-sha256: zz",
            ]);
            let head = String::from_utf8(text).unwrap().replacen("\r\n", &format!("\r\n{junk}\r\n"), 1);
            text = head.replacen("Signature=", "Signature=00", 1).into_bytes();
        }
    }
    let answer = tokio::time::timeout(Duration::from_millis(300), raw(at, &text, method == "HEAD")).await;
    if let Ok(Some(answer)) = answer {
        assert!(
            (400..=501).contains(&answer.status) && answer.status != 500,
            "{} to {}",
            answer.head,
            String::from_utf8_lossy(&text)
        );
    }
}
