//! Texts and binary of few different values, as a byte a value: a flag comes in one, instead of five.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, StringArray};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field};
use forebay_types::{Error, Result, hex};

use super::{from_hex, plain_type};

/// What is said of a field that is sent so: the hexadecimal digits of each value, in the order of their bytes, with commas between; and
/// whether they are texts.
const VALUES: &str = "values";
const OF: &str = "of";
const TEXT: &str = "text";
const BINARY: &str = "binary";
/// Rows that are looked at first, at least; how many different values there may be among them; and rows for each of these, at least.
const FIRST_ROWS: usize = 64;
const FIRST_VALUES: usize = 128;
const FIRST_ROWS_EACH: usize = 4;
/// Bytes of a value at most: there are few of them, but each may stand in every row.
const VALUE_BYTES_MAX: usize = 64;

/// The values of a column that is sent so, as far as they have come.
#[derive(Debug)]
pub(super) struct Codes {
    data_type: DataType,
    of: HashMap<Vec<u8>, u8>,
    values: Vec<Vec<u8>>,
}

impl Codes {
    /// For a column that begins with these values; none where they are no texts, or differ.
    pub(super) fn of(first: &ArrayRef) -> Option<Self> {
        let data_type = plain_type(first.data_type());
        if first.len() < FIRST_ROWS || !matches!(data_type, DataType::Utf8 | DataType::Binary) {
            return None;
        }
        let mut codes = Self { data_type, of: HashMap::new(), values: Vec::new() };
        let most = FIRST_VALUES.min(first.len() / FIRST_ROWS_EACH);
        (codes.add(first, most).is_some() && !codes.values.is_empty()).then_some(codes)
    }

    /// The codes of values, those of rows without one being anything; none where there are too many different values, or long ones.
    pub(super) fn encode(&mut self, array: &ArrayRef) -> Result<Option<ArrayRef>> {
        let Some(codes) = self.add(array, usize::from(u8::MAX) + 1) else { return Ok(None) };
        assert_eq!(codes.len(), array.len(), "each value has a code");
        let sent = FixedSizeBinaryArray::try_new(1, Buffer::from_vec(codes), array.nulls().cloned());
        sent.map(|sent| Some(Arc::new(sent) as ArrayRef)).map_err(|error| Error::corrupt(format!("codes of values: {error}")))
    }

    fn add(&mut self, array: &ArrayRef, most: usize) -> Option<Vec<u8>> {
        let mut codes = Vec::with_capacity(array.len());
        match array.data_type() {
            DataType::Utf8 => {
                array.as_string::<i32>().iter().try_for_each(|text| self.code(text.map(str::as_bytes), most, &mut codes))
            }
            DataType::Utf8View => {
                array.as_string_view().iter().try_for_each(|text| self.code(text.map(str::as_bytes), most, &mut codes))
            }
            DataType::Binary => array.as_binary::<i32>().iter().try_for_each(|bytes| self.code(bytes, most, &mut codes)),
            DataType::BinaryView => array.as_binary_view().iter().try_for_each(|bytes| self.code(bytes, most, &mut codes)),
            _ => None,
        }?;
        debug_assert_eq!(self.of.len(), self.values.len(), "each value has one code");
        Some(codes)
    }

    fn code(&mut self, value: Option<&[u8]>, most: usize, codes: &mut Vec<u8>) -> Option<()> {
        let Some(value) = value else {
            codes.push(0);
            return Some(());
        };
        // Values often stand beside their like.
        let last = codes.last().copied().filter(|last| self.values.get(usize::from(*last)).is_some_and(|known| known == value));
        let code = match last.or_else(|| self.of.get(value).copied()) {
            Some(code) => code,
            None if self.values.len() < most && value.len() <= VALUE_BYTES_MAX => {
                let code = u8::try_from(self.values.len()).ok()?;
                self.values.push(value.to_vec());
                self.of.insert(value.to_vec(), code);
                code
            }
            None => return None,
        };
        debug_assert_eq!(self.values.len(), self.of.len(), "each value has one code");
        codes.push(code);
        Some(())
    }

    /// The field that they are sent as, with the values that have come.
    pub(super) fn field(&self, name: &str, nullable: bool) -> Field {
        let values = self.values.iter().map(|value| hex(value)).collect::<Vec<_>>().join(",");
        let of = if self.data_type == DataType::Utf8 { TEXT } else { BINARY };
        let said = [(VALUES.to_string(), values), (OF.to_string(), of.to_string())];
        Field::new(name, DataType::FixedSizeBinary(1), nullable).with_metadata(HashMap::from(said))
    }
}

/// What the bytes of a column that was sent so stand for.
#[derive(Clone, Debug)]
pub struct Coded {
    data_type: DataType,
    values: Vec<Vec<u8>>,
}

impl Coded {
    /// How a field was sent; none where it was not sent so.
    /// `Corrupt` when that can't be.
    pub fn of_field(field: &Field) -> Result<Option<Self>> {
        let (Some(values), Some(of)) = (field.metadata().get(VALUES), field.metadata().get(OF)) else { return Ok(None) };
        let bad = || Error::corrupt(format!("column `{}` says of its values what can't be", field.name()));
        let data_type = match of.as_str() {
            TEXT => DataType::Utf8,
            BINARY => DataType::Binary,
            _ => return Err(bad()),
        };
        let values = values.split(',').map(from_hex).collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        let are_texts = values.iter().all(|value| std::str::from_utf8(value).is_ok());
        let are_short = values.iter().all(|value| value.len() <= VALUE_BYTES_MAX);
        let fits = values.len() <= usize::from(u8::MAX) + 1 && are_short && (are_texts || data_type == DataType::Binary);
        if fits && *field.data_type() == DataType::FixedSizeBinary(1) { Ok(Some(Self { data_type, values })) } else { Err(bad()) }
    }

    /// The column's own type, without views.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The values that were sent.
    /// `Corrupt` for an array that was not sent so.
    pub fn decode(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let codes = array.as_fixed_size_binary_opt().filter(|codes| codes.value_length() == 1);
        let codes = codes.ok_or_else(|| Error::corrupt(format!("codes of values came as {}", array.data_type())))?;
        let place = |code: Option<&[u8]>| match code.map(|code| usize::from(code[0])) {
            Some(at) if at >= self.values.len() => Err(Error::corrupt("a code that stands for no value")),
            place => Ok(place),
        };
        let places = codes.iter().map(place).collect::<Result<Vec<_>>>()?.into_iter();
        if self.data_type == DataType::Binary {
            return Ok(Arc::new(places.map(|at| at.map(|at| &self.values[at])).collect::<BinaryArray>()));
        }
        let texts = self.values.iter().map(|value| std::str::from_utf8(value)).collect::<std::result::Result<Vec<_>, _>>();
        let texts = texts.map_err(|_| Error::corrupt("a value that is no text"))?;
        Ok(Arc::new(places.map(|at| at.map(|at| texts[at])).collect::<StringArray>()))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringViewArray, UInt8Array};

    use super::*;

    fn flags(rows: usize) -> ArrayRef {
        let flag = |row: usize| (!row.is_multiple_of(11)).then_some(["A", "", "Nö"][row % 3]);
        Arc::new((0..rows).map(flag).collect::<StringViewArray>())
    }

    fn numbered(rows: usize, different: usize) -> ArrayRef {
        Arc::new((0..rows).map(|row| Some(format!("value {}", row % different))).collect::<StringViewArray>())
    }

    fn back(codes: &Codes, sent: &ArrayRef) -> ArrayRef {
        let field = codes.field("0", true);
        assert_eq!(sent.data_type(), field.data_type());
        Coded::of_field(&field).unwrap().unwrap().decode(sent).unwrap()
    }

    #[test]
    fn few_values_come_back_from_a_byte_each() {
        let mut codes = Codes::of(&flags(100)).unwrap();
        let sent = codes.encode(&flags(500)).unwrap().unwrap();
        let expected: ArrayRef = Arc::new(flags(500).as_string_view().iter().collect::<StringArray>());
        assert_eq!(&back(&codes, &sent), &expected);
        assert_eq!(back(&codes, &sent.slice(7, 100)).as_ref(), expected.slice(7, 100).as_ref());
        let binary: ArrayRef = Arc::new(BinaryArray::from_iter((0..100).map(|row| (row != 5).then_some([0xff, row as u8 % 2]))));
        let mut codes = Codes::of(&binary).unwrap();
        let sent = codes.encode(&binary).unwrap().unwrap();
        assert_eq!(&back(&codes, &sent), &binary);
    }

    #[test]
    fn more_values_may_come_later_and_too_many_are_none() {
        let mut codes = Codes::of(&numbered(200, 30)).unwrap();
        let sent = codes.encode(&numbered(1000, 256)).unwrap().unwrap();
        let expected: ArrayRef = Arc::new(numbered(1000, 256).as_string_view().iter().collect::<StringArray>());
        assert_eq!(&back(&codes, &sent), &expected);
        assert!(codes.encode(&numbered(1000, 257)).unwrap().is_none());
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(VALUE_BYTES_MAX + 1); 100]));
        for other in [numbered(100, 33), numbered(FIRST_ROWS - 1, 1), long, Arc::new(UInt8Array::from(vec![1; 100])) as ArrayRef]
        {
            assert!(Codes::of(&other).is_none(), "{}", other.data_type());
        }
    }

    #[test]
    fn what_a_field_can_not_say_is_damaged() {
        let mut codes = Codes::of(&flags(100)).unwrap();
        let sent = codes.encode(&flags(100)).unwrap().unwrap();
        let good = codes.field("0", true);
        let with = |key: &str, value: &str| {
            let mut said = good.metadata().clone();
            said.insert(key.to_string(), value.to_string());
            Coded::of_field(&good.clone().with_metadata(said))
        };
        let many = vec!["00"; 257].join(",");
        let long = "00".repeat(VALUE_BYTES_MAX + 1);
        for (key, value) in [
            (VALUES, "4"),
            (VALUES, "zz"),
            (VALUES, "ff"),
            (VALUES, many.as_str()),
            (VALUES, long.as_str()),
            (OF, "number"),
            (OF, ""),
        ] {
            assert!(with(key, value).is_err(), "{key} {value}");
        }
        assert!(Coded::of_field(&good.clone().with_data_type(DataType::FixedSizeBinary(2))).is_err());
        let one = with(VALUES, "41").unwrap().unwrap();
        assert!(one.decode(&sent).is_err(), "codes without a value");
        assert!(one.decode(&flags(3)).is_err());
    }
}
