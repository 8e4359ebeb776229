//! Against the way of all requests: whatever is taken here is taken there.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

use super::*;
use crate::auth::{Caller, authenticate};
use crate::dialect::Target;
use crate::settings::Anonymous;

const ID: &str = "AKID";
const SECRET: &str = "secret/+";

/// A request, signed as clients do it, and then perhaps changed.
#[derive(Clone, Debug)]
struct Asked {
    method: &'static str,
    path: String,
    /// Beside what a presigned URL has.
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    presigned: bool,
    /// Seconds between signing and asking.
    late_secs: i64,
    expires_secs: i64,
    hash: Option<&'static str>,
    secret: &'static str,
    id: &'static str,
    signed_at: DateTime<Utc>,
}

/// The target and the headers, as they are sent.
fn sign(asked: &Asked) -> (String, Vec<(String, String)>) {
    let stamp = asked.signed_at.format("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/eu-west-1/s3/aws4_request", &stamp[..8]);
    let mut headers = asked.headers.clone();
    headers.push(("host".into(), "localhost:9000".into()));
    if !asked.presigned {
        headers.push(("x-amz-date".into(), stamp.clone()));
        headers.push(("x-amz-content-sha256".into(), asked.hash.unwrap_or("UNSIGNED-PAYLOAD").into()));
    }
    headers.sort();
    let names = headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect::<Vec<_>>().join(";");
    let mut query = asked.query.clone();
    if asked.presigned {
        for (name, value) in [
            ("X-Amz-Algorithm", ALGORITHM.to_string()),
            ("X-Amz-Credential", format!("{}/{scope}", asked.id).replace('/', "%2F")),
            ("X-Amz-Date", stamp.clone()),
            ("X-Amz-Expires", asked.expires_secs.to_string()),
            ("X-Amz-SignedHeaders", names.replace(';', "%3B")),
        ] {
            query.push((name.into(), value));
        }
    }
    let pairs =
        |query: &[(String, String)]| query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let mut sorted = query.clone();
    sorted.sort();
    let lines: String = headers.iter().map(|(name, value)| format!("{}:{}\n", name.to_ascii_lowercase(), value.trim())).collect();
    let hash = if asked.presigned { "UNSIGNED-PAYLOAD" } else { asked.hash.unwrap_or("UNSIGNED-PAYLOAD") };
    let canonical = format!("{}\n{}\n{}\n{lines}\n{names}\n{hash}", asked.method, asked.path, pairs(&sorted));
    let hashed = forebay_types::hex(digest(&SHA256, canonical.as_bytes()).as_ref());
    let mut key = format!("AWS4{}", asked.secret).into_bytes();
    for part in scope.split('/').chain([format!("{ALGORITHM}\n{stamp}\n{scope}\n{hashed}").as_str()]) {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    let signature = forebay_types::hex(&key);
    match asked.presigned {
        true => query.push(("X-Amz-Signature".into(), signature)),
        false => {
            let credential = format!("{}/{scope}", asked.id);
            let text = format!("{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}");
            headers.push(("authorization".into(), text));
        }
    }
    let target = if query.is_empty() { asked.path.clone() } else { format!("{}?{}", asked.path, pairs(&query)) };
    (target, headers)
}

/// What both ways of looking at a request find: who signed it.
fn both(keys: &Keys, method: &str, target: &str, headers: &[(String, String)], now: DateTime<Utc>) -> [Option<String>; 2] {
    let mut request = http::Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let Ok(request) = request.body(()) else { return [None, None] };
    let general = Target::of(&request, &[]).and_then(|target| {
        let (parts, ()) = request.into_parts();
        authenticate(keys, &parts, &target.query, now)
    });
    let general = if let Ok((Caller::Key(rule), _)) = general { Some(rule.id.clone()) } else { None };
    let list: Vec<_> = headers.iter().map(|(name, value)| httparse::Header { name, value: value.trim().as_bytes() }).collect();
    let once = |name: &str| {
        let mut found = headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (authorization, date, hash) = (once("authorization"), once("x-amz-date"), once("x-amz-content-sha256"));
    let sent = Sent { method, path, query, headers: &list, authorization, date, hash };
    [general, signer(keys, &sent, now.timestamp_millis()).map(|rule| rule.id.clone())]
}

fn keys() -> Keys {
    Keys::new(&[AccessRule::new(ID, SECRET), AccessRule::new("OTHER", "other")], Anonymous::Off)
}

fn asked() -> impl Strategy<Value = Asked> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b-1", "/", "~", "%20", "%C3%A9", ".x", "_"]), 1..8);
    let headers = prop::sample::subsequence(
        vec![("range", "bytes=0-9"), ("x-amz-checksum-mode", "ENABLED"), ("User-Agent", " a  b ".trim()), ("accept", "*/*")],
        0..4,
    );
    let hash = prop::sample::select(vec![
        None,
        Some("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        Some("nonsense"),
    ]);
    let late = prop_oneof![8 => Just(0i64), 1 => -1000i64..1000, 1 => 590i64..610];
    let who = prop::sample::select(vec![(ID, SECRET), (ID, SECRET), ("OTHER", "other"), (ID, "wrong"), ("NOBODY", SECRET)]);
    let extra = prop::sample::select(vec![vec![], vec![("x-id", "GetObject")], vec![("partNumber", "1")], vec![("x", "%41")]]);
    let times = (late, 0i64..700_000, 1_600_000_000i64..1_900_000_000);
    (prop::sample::select(vec!["GET", "HEAD"]), path, headers, hash, who, extra, any::<bool>(), times).prop_map(
        |(method, path, headers, hash, (id, secret), extra, presigned, (late_secs, expires_secs, at))| Asked {
            method,
            path: format!("/lake/{}", path.concat()),
            query: extra.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            headers: headers.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            presigned,
            late_secs,
            expires_secs,
            hash,
            secret,
            id,
            signed_at: DateTime::from_timestamp(at, 0).unwrap(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Whatever is taken here is taken there, from the same one; and what is usual is taken here, once its key is known.
    #[test]
    fn as_all_requests_are_looked_at(asked in asked(), change in 0usize..12, place in any::<prop::sample::Index>(), byte in 33u8..127) {
        let keys = keys();
        // The keys of both are known from earlier requests of that day.
        let scope = asked.signed_at.format("%Y%m%d/eu-west-1/s3/aws4_request").to_string();
        for id in [ID, "OTHER"] {
            keys.signing_key(&keys.find(id).unwrap(), &scope);
        }
        let (mut target, mut headers) = sign(&asked);
        let now = asked.signed_at + TimeDelta::seconds(asked.late_secs);
        match change {
            0 => {
                let at = place.index(target.len());
                target.replace_range(at..at + 1, &char::from(byte).to_string());
            }
            1 => {
                let header = place.index(headers.len());
                let value = &mut headers[header].1;
                let at = place.index(value.len());
                value.replace_range(at..at + 1, &char::from(byte).to_string());
            }
            2 => {
                let at = place.index(headers.len());
                headers.remove(at);
            }
            3 => headers.push(("x-amz-meta-added".into(), "1".into())),
            4 => headers.push(("range".into(), "bytes=5-6".into())),
            5 => target.push_str(if target.contains('?') { "&x=1" } else { "?x=1" }),
            _ => {}
        }
        let [general, short] = both(&keys, asked.method, &target, &headers, now);
        if let Some(short) = &short {
            prop_assert_eq!(Some(short), general.as_ref(), "{} {:?}", target, headers);
        }
        let usual = change > 5
            && asked.query.iter().all(|(name, _)| name == "x-id")
            && (asked.presigned || asked.hash.is_none_or(|hash| hash.len() == 64));
        if usual {
            prop_assert_eq!(short, general, "{} {:?}", target, headers);
        }
    }
}
