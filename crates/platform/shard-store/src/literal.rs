//! Values as people and programs write them; only the column they are compared with says what they are.

use std::fmt;

use serde_json::{Number, Value};

use forebay_types::{Error, Result};

/// A value as it was written in a question, before the column's type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Text, quoted or bare; read as the column's type.
    Text(String),
    /// Bytes: `x'00ff'` in text, `{"base64": ".."}` in JSON.
    Bytes(Vec<u8>),
    /// A JSON number.
    Number(Number),
    /// A JSON boolean.
    Bool(bool),
    /// A JSON null.
    Null,
}

impl Literal {
    /// From what stands on a command line: text, or bytes as `x'00ff'`.
    pub fn parse(text: &str) -> Result<Self> {
        match text.strip_prefix("x'").and_then(|rest| rest.strip_suffix('\'')) {
            None => Ok(Self::Text(text.to_string())),
            Some(hex) => parse_hex(hex).map(Self::Bytes),
        }
    }

    /// From JSON.
    pub fn from_json(value: &Value) -> Result<Self> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::Bool(value) => Ok(Self::Bool(*value)),
            Value::Number(number) => Ok(Self::Number(number.clone())),
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Object(object) if object.len() == 1 => match object.get("base64") {
                Some(Value::String(text)) => decode_base64(text).map(Self::Bytes),
                _ => Err(not_a_value(value)),
            },
            _ => Err(not_a_value(value)),
        }
    }

    /// To JSON, which [`Self::from_json`] reads as the same.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.clone()),
            Self::Bytes(bytes) => serde_json::json!({"base64": encode_base64(bytes)}),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Bool(value) => Value::Bool(*value),
            Self::Null => Value::Null,
        }
    }

    /// To JSON: text where bytes are UTF-8.
    pub fn bytes_to_json(bytes: &[u8]) -> Value {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::String(text.to_string()),
            Err(_) => serde_json::json!({"base64": encode_base64(bytes)}),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// Pairs of hex digits.
pub(crate) fn parse_hex(hex: &str) -> Result<Vec<u8>> {
    let pairs = (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.ok_or_else(|| Error::invalid(format!("x'{hex}' is not pairs of hex digits")))
}

fn not_a_value(value: &Value) -> Error {
    Error::invalid(format!("{value} is no value: a string, number, true, false, null or {{\"base64\": \"..\"}}"))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().chain([&0, &0]).take(3).fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn decode_base64(text: &str) -> Result<Vec<u8>> {
    let wrong = || Error::invalid(format!("{text:?} is not base64 (RFC 4648, section 4)"));
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return Err(wrong());
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for place in 0..4 {
            let digit = match chunk.get(place) {
                Some(byte) => DIGITS.iter().position(|digit| digit == byte).ok_or_else(wrong)?,
                None => 0,
            };
            bits = bits << 6 | digit as u32;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc() {
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode_base64(plain.as_bytes()), text);
            assert_eq!(decode_base64(text).unwrap(), plain.as_bytes());
        }
        for wrong in ["Zg", "Zg=", "Z===", "Z!==", "Zm9vYg"] {
            assert!(decode_base64(wrong).is_err(), "{wrong}");
        }
    }
}
