//! From a message's bytes to rows, past the checks.

use std::collections::HashMap;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::ipc::reader::FileDecoder;
use datafusion::arrow::ipc::{self, Block, Message, MessageHeader, MetadataVersion, root_as_message};

use super::body;
use super::layout::{Against, pieces};
use crate::null_fields::with_null_fields;
use crate::paths::guard::fault::{Fault, Result, caught, damage};

/// What messages of Arrow 0.17 name their compression by: readers of now take their buffers for plain ones.
const COMPRESSED_BEFORE_1_0: &str = "ARROW:experimental_compression";

/// Marks a message whose length stands after it, as all have but the oldest.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// How often the memory of SQL may be copied for dictionaries that grow, each time anew.
const COPIES_MAX: u64 = 1 << 10;

/// Decodes messages, after what they say has been checked against their bytes.
pub(super) struct Messages {
    schema: SchemaRef,
    columns: Vec<usize>,
    decoder: FileDecoder,
    decoded_bytes_max: u64,
    /// Bytes of each dictionary.
    dictionaries: HashMap<i64, u64>,
    copied_bytes: u64,
}

/// A message that may be decoded.
struct Checked {
    block: Block,
    bytes: Buffer,
    decoded_bytes: u64,
}

impl Messages {
    pub(super) fn new(schema: SchemaRef, version: MetadataVersion, columns: Vec<usize>, decoded_bytes_max: u64) -> Self {
        let decoder = FileDecoder::new(schema.clone(), version).with_projection(columns.clone());
        Self { schema, columns, decoder, decoded_bytes_max, dictionaries: HashMap::new(), copied_bytes: 0 }
    }

    /// Takes a message that has some of a dictionary's values.
    pub(super) fn take_dictionary(&mut self, bytes: Bytes, head_bytes: usize) -> Result<()> {
        let message = message(&bytes, head_bytes)?;
        let Some(dictionary) = message.header_as_dictionary_batch() else { return damage("a dictionary is something else") };
        let (id, grows) = (dictionary.id(), dictionary.isDelta());
        let checked = self.checked(&bytes, head_bytes)?;
        let known = if grows { self.dictionaries.get(&id).copied().unwrap_or_default() } else { 0 };
        self.copied_bytes = self.copied_bytes.saturating_add(known);
        if self.copied_bytes > self.decoded_bytes_max.saturating_mul(COPIES_MAX) {
            return damage("a dictionary grows too often");
        }
        self.dictionaries.insert(id, known.saturating_add(checked.decoded_bytes));
        let held = self.dictionaries.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        if checked.decoded_bytes > bytes.len() as u64 && held > self.decoded_bytes_max {
            return Err(Fault::TooLarge { bytes: held, most: self.decoded_bytes_max });
        }
        caught(|| self.decoder.read_dictionary(&checked.block, &checked.bytes))
    }

    /// The rows of a message; none of one that has nothing.
    pub(super) fn rows(&self, bytes: Bytes, head_bytes: usize) -> Result<Option<RecordBatch>> {
        let checked = self.checked(&bytes, head_bytes)?;
        caught(|| self.decoder.read_record_batch(&checked.block, &checked.bytes)?.map(with_null_fields).transpose())
    }

    fn checked(&self, bytes: &Bytes, head_bytes: usize) -> Result<Checked> {
        let message = message(bytes, head_bytes)?;
        let against =
            Against { version: message.version(), body: &bytes[head_bytes..], decoded_bytes_max: self.decoded_bytes_max };
        let (batch, pieces) = match message.header_type() {
            MessageHeader::RecordBatch => {
                let Some(batch) = message.header_as_record_batch() else { return damage("a message has no rows") };
                let fields = self.schema.fields().iter().enumerate();
                let columns = fields.map(|(at, field)| (field.data_type(), self.columns.contains(&at)));
                (batch, pieces(&batch, columns, &against)?)
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch();
                let Some((id, batch)) = dictionary.and_then(|dictionary| Some((dictionary.id(), dictionary.data()?))) else {
                    return damage("a dictionary has no values");
                };
                (batch, pieces(&batch, std::iter::once((self.values_of(id)?, true)), &against)?)
            }
            MessageHeader::NONE => return Ok(as_it_is(bytes, head_bytes)),
            other => return damage(format!("a message of a kind that has no place here ({other:?})")),
        };
        let (Some(compression), Some(buffers)) = (batch.compression(), batch.buffers()) else {
            return Ok(as_it_is(bytes, head_bytes));
        };
        let metadata = &bytes[prefix_bytes(bytes)..head_bytes];
        let entries = buffers.bytes().as_ptr() as usize - metadata.as_ptr() as usize;
        let whole = body::decoded(metadata, entries, &pieces, against.body, compression.codec())?;
        let (head_bytes, body_bytes) = (whole.head_bytes, whole.bytes.len() - whole.head_bytes);
        let block = Block::new(0, head_bytes as i32, body_bytes as i64);
        Ok(Checked { block, bytes: Buffer::from_vec(whole.bytes), decoded_bytes: body_bytes as u64 })
    }

    /// The type of a dictionary's values.
    fn values_of(&self, id: i64) -> Result<&DataType> {
        #[expect(deprecated, reason = "the decoder goes by the same")]
        let fields = self.schema.fields_with_dict_id(id);
        match fields.first().map(|field| field.data_type()) {
            Some(DataType::Dictionary(_, values)) => Ok(values),
            _ => damage("a dictionary belongs to no column"),
        }
    }
}

/// Bytes before a message's metadata.
pub(super) fn prefix_bytes(bytes: &[u8]) -> usize {
    if bytes.starts_with(&CONTINUATION) { 8 } else { 4 }
}

/// A message that is not compressed.
fn as_it_is(bytes: &Bytes, head_bytes: usize) -> Checked {
    let body_bytes = bytes.len() - head_bytes;
    let block = Block::new(0, head_bytes as i32, body_bytes as i64);
    Checked { block, bytes: Buffer::from(bytes.clone()), decoded_bytes: body_bytes as u64 }
}

/// What a message says, from the bytes before its body.
fn message(bytes: &[u8], head_bytes: usize) -> Result<Message<'_>> {
    let Some(metadata) = bytes.get(prefix_bytes(bytes)..head_bytes) else { return damage("a message has no metadata") };
    metadata_of(metadata)
}

pub(super) fn metadata_of(metadata: &[u8]) -> Result<ipc::Message<'_>> {
    let message = root_as_message(metadata).map_err(|error| Fault::Damage(format!("a message can't be read ({error})")))?;
    let mut said = message.custom_metadata().into_iter().flatten().filter_map(|pair| pair.key());
    match said.any(|key| key == COMPRESSED_BEFORE_1_0) {
        true => Err(Fault::Unsupported("it is compressed as Arrow did before 1.0, which was an experiment".to_string())),
        false => Ok(message),
    }
}
