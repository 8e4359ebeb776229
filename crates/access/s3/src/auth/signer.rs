//! Signatures of plain requests, checked without making anything of them.

use std::io::Write;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use ring::hmac;

use super::canonical::{is_encoded, squeeze};
use super::credential::{ALGORITHM, hex_into, unhex};
use super::keys::Keys;
use super::verify::{EXPIRES_MAX_SECS, SKEW};
use crate::settings::AccessRule;

/// A request's parts that a signature is of, as they were sent: each of these headers stood there once, and was text.
pub(crate) struct Sent<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// All headers.
    pub(crate) headers: &'a [httparse::Header<'a>],
    pub(crate) authorization: Option<&'a str>,
    pub(crate) date: Option<&'a str>,
    pub(crate) hash: Option<&'a str>,
}

/// What a signature says of itself, wherever it stood.
struct Claim<'a> {
    /// `KEY/20240102/us-east-1/s3/aws4_request`.
    credential: &'a str,
    headers: &'a str,
    signature: &'a str,
    stamp: &'a str,
    hash: &'a str,
}

/// Parameters of a presigned URL at most.
const PAIRS_MAX: usize = 8;

/// Who signed a request, as nearly all clients sign theirs, if its signature is right at `now_ms`.
///
/// None says nothing: what is unusual, late or wrong is for [`super::authenticate`] to look at, which checks the same and
/// knows what to answer. Whatever is taken here is taken there.
pub(crate) fn signer(keys: &Keys, sent: &Sent<'_>, now_ms: i64) -> Option<Arc<AccessRule>> {
    if !is_encoded(sent.path, true) {
        return None;
    }
    let mut pairs = [("", ""); PAIRS_MAX];
    let mut count = 0;
    for pair in sent.query.split('&').filter(|_| !sent.query.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        if count == PAIRS_MAX || name.is_empty() || !is_encoded(name, false) || !is_encoded(value, false) {
            return None;
        }
        pairs[count] = (name, value);
        count += 1;
    }
    let pairs = &mut pairs[..count];
    match sent.authorization {
        Some(text) => {
            // What asks for something beside the object is not for here.
            if pairs.iter().any(|(name, _)| *name != "x-id") {
                return None;
            }
            let rest = text.strip_prefix(ALGORITHM)?;
            let field = |name: &str| rest.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
            let stamp = sent.date?;
            let late_ms = now_ms - seconds_of(stamp)? * 1000;
            if late_ms.abs() > SKEW.num_milliseconds() {
                return None;
            }
            let claim = Claim {
                credential: field("Credential")?,
                headers: field("SignedHeaders")?,
                signature: field("Signature")?,
                stamp,
                hash: sent.hash.filter(|hash| *hash == "UNSIGNED-PAYLOAD" || unhex(hash).is_some())?,
            };
            verified(keys, sent, pairs, &claim)
        }
        None => presigned(keys, sent, pairs, now_ms),
    }
}

fn presigned(keys: &Keys, sent: &Sent<'_>, pairs: &mut [(&str, &str)], now_ms: i64) -> Option<Arc<AccessRule>> {
    let (mut algorithm, mut credential, mut stamp, mut expires, mut headers, mut signature) =
        (None, None, None, None, None, None);
    for (name, value) in pairs.iter() {
        let place = match *name {
            "X-Amz-Algorithm" => &mut algorithm,
            "X-Amz-Credential" => &mut credential,
            "X-Amz-Date" => &mut stamp,
            "X-Amz-Expires" => &mut expires,
            "X-Amz-SignedHeaders" => &mut headers,
            "X-Amz-Signature" => &mut signature,
            "x-id" => continue,
            _ => return None,
        };
        if place.replace(*value).is_some() {
            return None;
        }
    }
    let (stamp, expires) = (stamp?, expires?);
    if algorithm? != ALGORITHM || sent.hash.is_some() || !expires.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let expires: i64 = expires.parse().ok().filter(|secs| *secs <= EXPIRES_MAX_SECS)?;
    let signed_ms = seconds_of(stamp)? * 1000;
    if signed_ms - now_ms > SKEW.num_milliseconds() || now_ms > signed_ms + expires * 1000 {
        return None;
    }
    let credential = credential?.replace("%2F", "/");
    let headers = headers?.replace("%3B", ";");
    let claim = Claim { credential: &credential, headers: &headers, signature: signature?, stamp, hash: "UNSIGNED-PAYLOAD" };
    verified(keys, sent, pairs, &claim)
}

fn verified(keys: &Keys, sent: &Sent<'_>, pairs: &mut [(&str, &str)], claim: &Claim<'_>) -> Option<Arc<AccessRule>> {
    let (id, scope) = claim.credential.split_once('/')?;
    if scope.get(..8)? != &claim.stamp[..8] || id.contains('%') {
        return None;
    }
    let signature = unhex(claim.signature)?;
    // Kept are scopes that were found to be of the right form.
    let (rule, key) = keys.derived(claim.credential)?;
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(sent.method.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(sent.path.as_bytes());
    out.push(b'\n');
    pairs.sort_unstable();
    let mut first = true;
    for (name, value) in pairs.iter().filter(|(name, _)| *name != "X-Amz-Signature") {
        if !std::mem::take(&mut first) {
            out.push(b'&');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'\n');
    let mut signed = 0u32;
    for name in claim.headers.split(';') {
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut found = sent.headers.iter().enumerate().filter(|(_, header)| header.name.eq_ignore_ascii_case(name));
        let (Some((at, header)), None) = (found.next(), found.next()) else { return None };
        signed |= 1u32.checked_shl(at as u32)?;
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        squeeze(header.value, &mut out);
        out.push(b'\n');
    }
    out.push(b'\n');
    // Nobody on the way may add what changes the meaning, or say another host.
    for (at, header) in sent.headers.iter().enumerate() {
        let must = header.name.eq_ignore_ascii_case("host")
            || header.name.get(..6).is_some_and(|six| six.eq_ignore_ascii_case("x-amz-"));
        if must && signed & 1u32.checked_shl(at as u32)? == 0 {
            return None;
        }
    }
    out.extend_from_slice(claim.headers.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(claim.hash.as_bytes());
    let hashed = digest(&SHA256, &out);
    out.clear();
    write!(out, "{ALGORITHM}\n{}\n{scope}\n", claim.stamp).ok()?;
    hex_into(hashed.as_ref(), &mut out);
    hmac::verify(&key, &out, &signature).ok()?;
    Some(rule)
}

/// Reads `20240102T030405Z` as seconds since the Unix epoch.
fn seconds_of(stamp: &str) -> Option<i64> {
    let bytes: &[u8; 16] = stamp.as_bytes().try_into().ok()?;
    if bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = &bytes[from..to];
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0i64, |number, digit| number * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => 31,
    };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let day = year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    Some(((day * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
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
        let pairs = |query: &[(String, String)]| {
            query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
        };
        let mut sorted = query.clone();
        sorted.sort();
        let lines: String =
            headers.iter().map(|(name, value)| format!("{}:{}\n", name.to_ascii_lowercase(), value.trim())).collect();
        let hash = if asked.presigned { "UNSIGNED-PAYLOAD" } else { asked.hash.unwrap_or("UNSIGNED-PAYLOAD") };
        let canonical = format!("{}\n{}\n{}\n{lines}\n{names}\n{hash}", asked.method, asked.path, pairs(&sorted));
        let hashed = super::super::credential::hex(digest(&SHA256, canonical.as_bytes()).as_ref());
        let mut key = format!("AWS4{}", asked.secret).into_bytes();
        for part in scope.split('/').chain([format!("{ALGORITHM}\n{stamp}\n{scope}\n{hashed}").as_str()]) {
            key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
        }
        let signature = super::super::credential::hex(&key);
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
        let general = match general {
            Ok((Caller::Key(rule), _)) => Some(rule.id.clone()),
            _ => None,
        };
        let list: Vec<_> =
            headers.iter().map(|(name, value)| httparse::Header { name, value: value.trim().as_bytes() }).collect();
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
        let extra =
            prop::sample::select(vec![vec![], vec![("x-id", "GetObject")], vec![("partNumber", "1")], vec![("x", "%41")]]);
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

        #[test]
        fn times_are_read_as_everywhere(secs in 0i64..250_000_000_000, place in 0usize..16, byte in 32u8..127) {
            let stamp = DateTime::from_timestamp(secs, 0).unwrap().format("%Y%m%dT%H%M%SZ").to_string();
            prop_assert_eq!(seconds_of(&stamp), Some(secs));
            let mut other = stamp;
            other.replace_range(place..place + 1, &char::from(byte).to_string());
            if let Some(secs) = seconds_of(&other) {
                prop_assert_eq!(super::super::credential::parse_time(&other).map(|time| time.timestamp()), Some(secs), "{}", other);
            }
        }
    }
}
