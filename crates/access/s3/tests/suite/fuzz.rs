//! Random requests, good and bad, against what the store would have. `FOREBAY_TEST_FUZZ_SECS` makes it go on for longer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::client::{raw, request};
use crate::cluster::{Cluster, bytes, gateway_settings};

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
    let (at, mut dice) = (cluster.address(), Dice(seed));
    let mut known: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let keys = ["a", "a/", "a//b", "a/b c", "ä/€", "x%2Fy", "+", "a&b=c?d", "~tilde", "con.trol", "...", "a/.../b", "'q\"<>"];
    let begun = Instant::now();
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        rounds += 1;
        let key = dice.pick(&keys);
        let path = format!("/lake/{}", wire(key));
        match dice.roll(8) {
            0 => {
                let size = dice.roll(200_000);
                let body = bytes(dice.0, size);
                let answer = request("PUT", &path).body(body.clone()).send(at).await;
                assert_eq!(answer.status, 200, "{key}: {}", answer.text());
                known.insert(key.into(), body);
            }
            1 => {
                assert_eq!(request("DELETE", &path).send(at).await.status, 204);
                known.remove(key);
            }
            2 | 3 => {
                let answer = request("GET", &path).send(at).await;
                match known.get(key) {
                    Some(body) => assert!(answer.status == 200 && answer.body == *body, "{key}: {}", answer.status),
                    None => assert_eq!(answer.code(), "NoSuchKey", "{key}"),
                }
            }
            4 => {
                let (a, b) = (dice.roll(250_000), dice.roll(250_000));
                let answer = request("GET", &path).header("range", &format!("bytes={a}-{b}")).send(at).await;
                match known.get(key) {
                    None => assert_eq!(answer.code(), "NoSuchKey", "{key}"),
                    Some(body) if a > b => assert!(answer.status == 200 && answer.body == *body),
                    Some(body) if a >= body.len() => assert_eq!(answer.code(), "InvalidRange"),
                    Some(body) => {
                        assert!(answer.status == 206 && answer.body == body[a..(b + 1).min(body.len())], "{key} {a}-{b}")
                    }
                }
            }
            5 => {
                let answer = request("GET", "/lake?list-type=2").send(at).await;
                assert_eq!(answer.text().matches("<Contents>").count(), known.len(), "{}", answer.text());
            }
            6 => {
                // Past the gateway.
                let size = dice.roll(100_000);
                let body = bytes(dice.0, size);
                s3.put("data", key, &body).unwrap();
                known.insert(key.into(), body);
            }
            _ => nonsense(&mut dice, at, &path).await,
        }
    }
    assert!(rounds > 20, "{rounds} rounds");
    assert_eq!(request("GET", "/lake").send(at).await.status, 200);
}

/// A signed request with something wrong about it: it is refused, whatever it is, and the next one is served.
async fn nonsense(dice: &mut Dice, at: std::net::SocketAddr, path: &str) {
    let method = ["GET", "PUT", "DELETE", "POST", "HEAD", "PATCH", "OPTIONS"][dice.roll(7)];
    let mut text = request(method, path).body("body").head(at).into_bytes();
    match dice.roll(5) {
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
        3 => text.truncate(dice.roll(text.len())),
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
