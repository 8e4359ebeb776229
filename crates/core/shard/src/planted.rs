//! Planted defects of what a shard is made of, and that what must hold of it catches each.

use crate::base::Base;
use crate::bits::{elias_fano, pack};
use crate::build::Builder;
use crate::build::input::Input;
use crate::keys;
use crate::layers::LayerSet;
use crate::layers::build::LayerBuilder;
use crate::layers::id::{LayerId, LayerKind};
use crate::layers::sliced::{Sliced, Slot};
use crate::layers::texts::{Text, gather};
use crate::model::key::{Key, KeyType};
use crate::model::schema::Schema;
use crate::model::value::{Value, ValueType};
use crate::psi::{Column, PsiWriter};
use crate::record::Record;
use crate::record::blocks::{BLOCK_RECORDS, RawBlock};
use crate::record::codes::{self, Codes};

fn schema() -> Schema {
    Schema::new("id", KeyType::U64).with("name", ValueType::Text).with("place", ValueType::Text)
}

fn base() -> Base {
    let mut builder = Builder::new(schema()).unwrap();
    for record in 0..100u64 {
        let text = |what: &str| Value::Text(format!("{what} {record}"));
        builder.push(&Key::U64(record), &[text("name"), text("place")]).unwrap();
    }
    Base::open(builder.finish(0.0).unwrap().base).unwrap()
}

/// Writes the rows of a column, of which there are ten.
fn write_rows(rows: &[(u8, u32)]) {
    let mut writer = PsiWriter::new(&Column::layout(&[1, 5, 5]).unwrap());
    rows.iter().for_each(|(symbol, row)| writer.push(*symbol, *row));
    writer.finish();
}

/// Codes of one attribute that has two values, and a record with one of them.
fn numbered() -> (Codes, Record) {
    let section = codes::encode([vec![Some(&b"one"[..]), Some(b"two")]].into_iter());
    let mut record = Record::new();
    record.push(ValueType::Text, &Value::Text("two".into())).unwrap();
    (Codes::read(&section, 1).unwrap(), record)
}

#[test]
#[should_panic(expected = "lengths and values are those of")]
fn a_value_of_no_record_is_caught() {
    let mut input = Input::new(&schema());
    input.values.extend_from_slice(b"nobody's");
    input.for_each_record(2, |_, _, _| {});
}

#[test]
#[should_panic(expected = "each position has a row")]
fn a_text_without_all_its_rows_is_caught() {
    let builder = LayerBuilder::new(std::sync::Arc::new(base()), &[]).unwrap();
    let _ = builder.run_from_text(b"text", &[1, 2, 3]);
}

#[test]
#[should_panic(expected = "each record was taken")]
fn a_text_that_is_cut_off_is_caught() {
    let builder = LayerBuilder::new(std::sync::Arc::new(base()), &[]).unwrap();
    let _ = builder.run_from_text(b"", &[0]);
}

#[test]
#[should_panic(expected = "each piece of the slice was made")]
fn a_step_that_did_not_run_is_caught() {
    let text = Text { first: 0, frames: Vec::new(), frame_offsets: Vec::new(), bodies: vec![1, 2], body_offsets: vec![0, 1, 2] };
    gather(&[text], 0..3, 1, |text| (&text.bodies, &text.body_offsets));
}

#[test]
#[should_panic(expected = "rows of a column grow")]
fn rows_out_of_order_are_caught() {
    write_rows(&[(0, 0), (1, 5), (1, 4)]);
}

#[test]
#[should_panic(expected = "column 1 comes after 2")]
fn columns_out_of_order_are_caught() {
    write_rows(&[(0, 0), (2, 5), (1, 4)]);
}

#[test]
#[should_panic(expected = "has no room in the width")]
fn a_number_that_is_too_large_is_caught() {
    pack([1, 2, 300], 255);
}

#[test]
#[should_panic(expected = "values grow")]
fn values_that_shrink_are_caught() {
    elias_fano::encode(&[1, 3, 2]);
}

#[test]
#[should_panic(expected = "key 1 is above the one before")]
fn a_key_that_is_there_twice_is_caught() {
    keys::encode_strings([&b"key"[..], b"key"].into_iter());
}

#[test]
#[should_panic(expected = "values are in order, each once")]
fn a_value_with_two_numbers_is_caught() {
    codes::encode([vec![Some(&b"one"[..]), Some(b"one")]].into_iter());
}

#[test]
#[should_panic(expected = "are numbers of more records than a block has")]
fn a_block_of_too_many_records_is_caught() {
    let (codes, record) = numbered();
    let (numbers, mut block) = (codes.numbers(), RawBlock::new(&codes));
    (0..=BLOCK_RECORDS).for_each(|_| block.push(&codes, &numbers, &record).unwrap());
    block.finish();
}

#[test]
#[should_panic(expected = "each attribute has numbers, or is text")]
fn numbers_of_other_attributes_are_caught() {
    let (codes, record) = numbered();
    RawBlock::new(&codes).push(&codes, &Vec::new(), &record).unwrap();
}

#[test]
#[should_panic(expected = "slice 2 of 2 has a place")]
fn a_slice_behind_the_last_one_is_caught() {
    Sliced::new(4, 2).set(2, Slot::Absent);
}

#[test]
#[should_panic(expected = "each slice that is in its place has its bytes")]
fn a_slice_that_went_without_its_bytes_is_caught() {
    let base = base();
    let (mut set, id) = (LayerSet::empty(&base), LayerId { kind: LayerKind::IsaAttribute, which: 1, slice: 0 });
    set.begin_filling(&base, id).unwrap();
    set.isa[1].set(0, Slot::Absent);
    set.remove(&base, LayerId { slice: 1, ..id });
}
