//! Signatures of plain requests, checked without making anything of them.

use std::io::Write;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use ring::hmac;

use super::Keys;
use super::canonical::{is_encoded, squeeze};
use super::credential::{ALGORITHM, hex_into, unhex};
use super::stamp::seconds_of;
use super::verify::{EXPIRES_MAX_SECS, SKEW};
use crate::settings::AccessRule;

/// A request's parts that a signature is of, as they were sent: each of these headers stood there once, and was text.
pub(crate) struct Sent<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
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

#[cfg(test)]
mod tests;
