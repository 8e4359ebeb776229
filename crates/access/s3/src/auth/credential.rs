//! What a request says of its signature.

use http::StatusCode;

use crate::dialect::{S3Error, S3Result};

pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What a request says of its signature.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) key_id: String,
    /// `20240102/us-east-1/s3/aws4_request`.
    pub(super) scope: String,
    /// In lower case, in order.
    pub(super) headers: Vec<String>,
    pub(super) signature: [u8; 32],
}

impl Signed {
    pub(super) fn from_header(text: &str) -> S3Result<Self> {
        let malformed = |what: &str| {
            let message = format!("The authorization header is malformed; {what}.");
            S3Error::new(StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed", message)
        };
        let Some(rest) = text.strip_prefix(ALGORITHM) else {
            return Err(match text.starts_with("AWS ") {
                true => S3Error::invalid_request(
                    "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
                ),
                false => S3Error::invalid_argument("Unsupported Authorization Type"),
            });
        };
        let field = |name: &str| {
            let found = rest.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
            found.ok_or_else(|| malformed(&format!("{name} is missing")))
        };
        Self::new(field("Credential")?, field("SignedHeaders")?, field("Signature")?).map_err(malformed)
    }

    /// Takes the parts apart, wherever they stood.
    pub(super) fn new(credential: &str, headers: &str, signature: &str) -> Result<Self, &'static str> {
        let (key_id, scope) = credential.split_once('/').ok_or("the credential has no scope")?;
        let parts: Vec<&str> = scope.split('/').collect();
        let [date, _region, "s3", "aws4_request"] = parts[..] else {
            return Err("the credential's scope must be DATE/REGION/s3/aws4_request");
        };
        if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("the credential's date must be written as 20240102");
        }
        let headers: Vec<String> = headers.split(';').map(str::to_ascii_lowercase).collect();
        if !headers.iter().any(|header| header == "host") {
            return Err("the host must be signed");
        }
        let signature = unhex(signature).ok_or("the signature must be 64 hexadecimal digits")?;
        Ok(Self { key_id: key_id.into(), scope: scope.into(), headers, signature })
    }

    pub(super) fn date(&self) -> &str {
        &self.scope[..8]
    }
}

pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let digit = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let mut bytes = [0; 32];
    for (byte, two) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(two[0])? << 4 | digit(two[1])?;
    }
    Some(bytes)
}

pub(super) fn hex_into(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}
