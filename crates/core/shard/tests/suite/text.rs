//! The record text, of which attributes of few values are numbers, and the dial over all that there is.

use std::collections::BTreeMap;

use forebay_shard::{Key, KeyType, LayerKind, Query, Schema, Shard, Value, ValueType};

use crate::model::{Model, columns_of};

/// 3,000 records of a state and a grade that differ from record to record, nulls among them, and a note that is no other's.
fn model() -> Model {
    let states = ["", "asked for by mail", "on its way to the customer", "delivered in person"];
    let schema = Schema::new("id", KeyType::U64)
        .with("state", ValueType::Text)
        .with("note", ValueType::Bytes)
        .with("grade", ValueType::Int);
    let record = |id: u64| {
        let random = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let state = states.get((random % 5) as usize).map_or(Value::Null, |state| Value::Text((*state).to_owned()));
        let grade = if random.is_multiple_of(11) { Value::Null } else { Value::Int((random % 7) as i64 - 3) };
        let note = format!("{random:x}").repeat((random % 9) as usize);
        (Key::U64(id * 3), vec![state, Value::Bytes(note.into_bytes()), grade])
    };
    Model::new(schema, (0..3000).map(record))
}

#[test]
fn records_of_few_values_come_back_from_blocks() {
    let model = model();
    let built = model.build(0.0);
    let shard = Shard::open(built.base, []).unwrap();
    let all = shard.dial(1e9, &shard.counters());
    let ids: Vec<_> = all.into_iter().filter(|id| id.kind == LayerKind::Blocks).collect();
    let builder = shard.layer_builder(&ids).unwrap();
    builder.steps().into_iter().for_each(|step| builder.run(step).unwrap());
    for (_, part) in builder.finish().unwrap() {
        shard.add_layer(part).unwrap();
    }
    let text = shard.info().layer_bytes as f64;
    // The notes are random digits, four bits each; the state and the grade take five bits.
    assert!(text < 0.45 * shard.info().input_bytes as f64, "{text} of {}", shard.info().input_bytes);
    for (key, values) in &model.records {
        assert_eq!(shard.get(key).unwrap().as_ref(), Some(values), "{key:?}");
        for columns in [&[0][..], &[2, 0], &[1], &[0, 1], &[2, 2], &[]] {
            let right: Vec<Value> = columns.iter().map(|column| values[*column].clone()).collect();
            assert_eq!(columns_of(&shard, key, columns), Some(right), "{key:?} {columns:?}");
        }
    }
    assert_eq!(shard.get(&Key::U64(1)).unwrap(), None);
}

#[test]
fn the_dial_goes_past_one_and_a_half_without_jumps_and_never_over() {
    let model = model();
    let shard = Shard::open(model.build(0.0).base, []).unwrap();
    for key in model.records.keys() {
        shard.get(key).unwrap();
        shard.search(&Query::eq(2, Value::Int(1)), Some(3), None).unwrap();
    }
    let counters = shard.counters();
    let builder = shard.layer_builder(&shard.dial(1e9, &counters)).unwrap();
    builder.steps().into_iter().for_each(|step| builder.run(step).unwrap());
    let bytes: BTreeMap<_, _> = builder.finish().unwrap().into_iter().map(|(id, part)| (id, part.len())).collect();
    let (input, base) = (shard.info().input_bytes as f64, shard.info().base_bytes as f64);
    let mut last = base / input;
    for setting in 0..100 {
        let setting = base / input + f64::from(setting) / 50.0;
        let size = (base + shard.dial(setting, &counters).iter().map(|id| bytes[id] as f64).sum::<f64>()) / input;
        // Texts are estimated.
        assert!(size <= setting * 1.03 + 0.01, "{size} for {setting}");
        assert!(size <= last + 0.06, "from {last} to {size} at {setting}");
        last = last.max(size);
    }
    assert!(last > 1.5, "{last}");
}
