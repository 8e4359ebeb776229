//! JSON whose numbers are read as the nearest that a float of 64 bits can have, which `serde_json` alone does for most only.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// Reads JSON, each number as exactly as its type can have it.
pub fn exact_json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let read = serde_json::from_slice(text)?;
    if Numbers(text).all(is_read_exactly) {
        return Ok(read);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let exact = Exact(&mut Numbers(text)).deserialize(&mut deserializer)?;
    deserializer.end()?;
    serde_json::from_value(exact)
}

/// Whether `serde_json` alone makes the nearest float of a number; whole ones of few digits are none.
fn is_read_exactly(number: &str) -> bool {
    let is_whole = number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    is_whole && number.len() <= 18 || serde_json::from_str::<f64>(number).ok() == number.parse::<f64>().ok()
}

/// The numbers in a text that is JSON, as they are written, in their order.
struct Numbers<'a>(&'a [u8]);

impl<'a> Iterator for Numbers<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let (first, after) = self.0.split_first()?;
            match first {
                b'"' => {
                    let mut is_escaped = false;
                    let end = after.iter().position(|&byte| {
                        let ends = byte == b'"' && !is_escaped;
                        is_escaped = byte == b'\\' && !is_escaped;
                        ends
                    });
                    self.0 = &after[end? + 1..];
                }
                b'-' | b'0'..=b'9' => {
                    let of_number =
                        self.0.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
                    let length = of_number.count();
                    let (number, rest) = self.0.split_at(length);
                    self.0 = rest;
                    return std::str::from_utf8(number).ok();
                }
                _ => self.0 = after,
            }
        }
    }
}

/// A value whose numbers are the next ones of the text.
struct Exact<'a, 'b>(&'a mut Numbers<'b>);

impl<'de> DeserializeSeed<'de> for Exact<'_, '_> {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Exact<'_, '_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        self.0.next();
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        self.0.next();
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        let exact = self.0.next().and_then(|number| number.parse::<f64>().ok());
        Ok(exact.and_then(Number::from_f64).map_or_else(|| Json::from(value), Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = values.next_element_seed(Exact(&mut *self.0))? {
            all.push(value);
        }
        Ok(Json::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(Exact(&mut *self.0))?;
            object.insert(name, value);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_of_all_bits_come_back() {
        let (mut bits, mut inexact) = (1u64, 0);
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            for float in [f64::from_bits(bits), bits as f64 / 3e19].into_iter().filter(|float| float.is_finite()) {
                let text = json!({ "a": [1, -2, "3.5\\\"", { "b": float }], "c": float }).to_string();
                let read: Json = exact_json(text.as_bytes()).unwrap();
                for read in [&read["a"][3]["b"], &read["c"]] {
                    assert_eq!(read.as_f64().map(f64::to_bits), Some(float.to_bits()), "{text}");
                }
                assert_eq!(read.to_string(), text);
                inexact += usize::from(serde_json::from_str::<Json>(&text).unwrap() != read);
            }
        }
        assert!(inexact > 0, "some would be others");
    }

    #[test]
    fn digits_that_no_float_has_are_rounded_once() {
        for text in ["0.1234567890123456789012345", "123456789012345678901234567890", "8.2e-320", "7.038531e-26", "-0.0", "-0"] {
            let read: Json = exact_json(text.as_bytes()).unwrap();
            assert_eq!(read.as_f64().map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{text}");
        }
        let mut nested = "0.1234567890123456789012345".to_string();
        for _ in 0..100 {
            nested = format!("[{nested}]");
        }
        assert!(exact_json::<Json>(nested.as_bytes()).is_ok());
        for wrong in
            ["0.1234567890123456789012345 1", "[0.1234567890123456789012345", "1e999", "\"", "-", "[".repeat(1000).as_str()]
        {
            assert!(exact_json::<Json>(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
