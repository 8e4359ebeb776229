//! From records to a base part and its first layers: records are checked and encoded where they come in, kept by key, and the later of
//! two stays.

pub(crate) mod assemble;
mod dictionary;
pub(crate) mod distinct;
pub(crate) mod input;
pub(crate) mod rows;
pub(crate) mod sort;

use forebay_types::{Error, Result};

use crate::model::key::Key;
use crate::model::schema::Schema;
use crate::model::value::{Value, ValueType};
use crate::sampling::QueryCounters;
use assemble::{BuiltShard, assemble};
use input::Input;

/// The text of a shard is at most this long.
pub const INPUT_BYTES_MAX: u64 = (1 << 30) - (1 << 16);

/// Takes records and makes a shard of them. At its peak it holds about 9.5 bytes a byte of input.
///
/// ```
/// use forebay_shard::{Builder, Key, KeyType, Query, Schema, Shard, Value, ValueType};
///
/// let schema = Schema::new("id", KeyType::U64).with("name", ValueType::Text);
/// let mut builder = Builder::new(schema)?;
/// builder.push(&Key::U64(7), &[Value::Text("penstock".into())])?;
/// let built = builder.finish(0.5)?;
/// let shard = Shard::open(built.base, built.layers.into_iter().map(|(_, bytes)| bytes))?;
/// assert_eq!(shard.get(&Key::U64(7))?, Some(vec![Value::Text("penstock".into())]));
/// let page = shard.search(&Query::prefix(0, b"pen"), None, None)?;
/// assert_eq!(page.keys.iter().collect::<Vec<_>>(), [Key::U64(7)]);
/// # Ok::<(), forebay_types::Error>(())
/// ```
pub struct Builder {
    schema: Schema,
    input: Input,
    input_bytes: u64,
    /// Whether keys came in growing order so far.
    sorted: bool,
}

impl Builder {
    /// A builder of no records yet.
    pub fn new(schema: Schema) -> Result<Self> {
        schema.validate()?;
        let input = Input::new(&schema);
        Ok(Self { schema, input, input_bytes: 0, sorted: true })
    }

    /// Adds a record. Keys may come in any order; of two records with one key the later stays.
    pub fn push(&mut self, key: &Key, values: &[Value]) -> Result<()> {
        self.check(key, values.len())?;
        let mark = self.input.values.len();
        for (index, value) in values.iter().enumerate() {
            let from = self.input.values.len();
            let encoded = self.schema.attributes[index].value_type.encode(value, &mut self.input.values);
            match encoded {
                Ok(some) => self.input.end_value(index, some.then_some(from)),
                Err(error) => {
                    self.input.forget(mark);
                    return Err(error.context(&self.schema.attributes[index].name));
                }
            }
        }
        self.end_record(key, mark)
    }

    /// Adds a record of values that are encoded already: bytes for strings, [`Record::bytes`](crate::Record::bytes) for
    /// all types. `None` is null.
    pub fn push_encoded(&mut self, key: &Key, values: &[Option<&[u8]>]) -> Result<()> {
        self.check(key, values.len())?;
        let mark = self.input.values.len();
        for (index, value) in values.iter().enumerate() {
            let value_type = self.schema.attributes[index].value_type;
            if let Some(bytes) = value
                && value_type != ValueType::Bytes
                && value_type.decode(bytes).is_err()
            {
                self.input.forget(mark);
                return Err(Error::invalid(format!(
                    "{}: the bytes are not of type {value_type:?}",
                    self.schema.attributes[index].name
                )));
            }
            let from = self.input.values.len();
            self.input.values.extend_from_slice(value.unwrap_or_default());
            self.input.end_value(index, value.map(|_| from));
        }
        self.end_record(key, mark)
    }

    /// Bytes of input so far: keys, values, and a delimiter an attribute.
    pub fn input_bytes(&self) -> u64 {
        self.input_bytes
    }

    /// Records so far.
    pub fn len(&self) -> usize {
        self.input.keys.len()
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sorts and writes: the base, and the layers that bring it to `ratio` of the input, or as near below as they come.
    pub fn finish(self, ratio: f64) -> Result<BuiltShard> {
        self.finish_for(ratio, &QueryCounters::default())
    }

    /// The records so far in the order of their keys, what they look like, and their bytes.
    pub(crate) fn sorted(&mut self) -> (&Schema, &Input, u64) {
        self.sort();
        (&self.schema, &self.input, self.input_bytes)
    }

    fn sort(&mut self) {
        if !std::mem::replace(&mut self.sorted, true) {
            self.input_bytes -= self.input.sort(self.schema.attributes.len());
        }
    }

    /// The same with the layers that suit what was asked of these records before.
    pub fn finish_for(mut self, ratio: f64, counters: &QueryCounters) -> Result<BuiltShard> {
        self.sort();
        assemble(self.schema, self.input, self.input_bytes, Some((ratio, counters)))
    }

    /// The base alone, at a peak of about 6.5 bytes a byte of input; layers come later, by [`LayerBuilder`](crate::LayerBuilder).
    pub fn finish_base(mut self) -> Result<BuiltShard> {
        self.sort();
        assemble(self.schema, self.input, self.input_bytes, None)
    }

    fn check(&self, key: &Key, values: usize) -> Result<()> {
        if key.key_type() != self.schema.key_type {
            return Err(Error::invalid(format!("key {key} is not of type {:?}", self.schema.key_type)));
        }
        if values != self.schema.attributes.len() {
            return Err(Error::invalid(format!(
                "the record of key {key} has {values} values, the schema {} attributes",
                self.schema.attributes.len()
            )));
        }
        Ok(())
    }

    fn end_record(&mut self, key: &Key, mark: usize) -> Result<()> {
        let bytes = (key.len() + self.input.values.len() - mark + self.schema.attributes.len()) as u64;
        if self.input_bytes + bytes > INPUT_BYTES_MAX {
            self.input.forget(mark);
            return Err(Error::invalid(format!("a shard takes at most {INPUT_BYTES_MAX} bytes of records; begin another one")));
        }
        self.input_bytes += bytes;
        self.sorted &= self.input.keys.push(key);
        self.input.lengths_mark = self.input.lengths.len();
        assert!(
            self.input.values.len() as u64 <= self.input_bytes,
            "{} bytes of input are counted, and more are there",
            self.input_bytes
        );
        Ok(())
    }
}
