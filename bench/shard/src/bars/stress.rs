//! Answers checked against brute force while everything about a shard changes at once, and again from disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_shard::{Key, Query, Value};
use forebay_shard_store::{Change, Column, ColumnKind, Columns, Sealer, Store};
use forebay_types::{Error, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::measure::{Bar, Figure};

const RECORDS: u64 = 20_000;
const READERS: u64 = 3;

type Meets = Box<dyn Fn(&[Value]) -> bool>;
type Answers = (BTreeMap<u64, Vec<Value>>, Vec<(Query, Vec<Key>)>);

/// Readers check every answer against brute force while layers come, go and are filled, records are put (the same values
/// again, so that answers stay), and all of it is merged.
pub(crate) fn stress(seconds: u64, seed: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("stress.shard");
    let mut random = StdRng::seed_from_u64(seed);
    let (records, questions) = data(&mut random);
    let column = |name: &str, kind| Column { name: name.to_string(), kind };
    let columns = vec![
        column("id", ColumnKind::Int),
        column("word", ColumnKind::Text),
        column("bytes", ColumnKind::Binary),
        column("number", ColumnKind::Int),
    ];
    let mut building = Store::build(&path, Columns::new(columns, "id")?, 0.6)?;
    for (key, values) in &records {
        building.push(Key::U64(*key), values.clone())?;
    }
    building.finish()?;
    let store = Arc::new(Store::open_to_change(&path)?);
    let sealer = Sealer::start(store.clone())?;
    let (stop, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let changes = std::thread::scope(|scope| -> Result<u64> {
        let (store, stop, asked, records, questions) = (&store, &stop, &asked, &records, &questions);
        let readers: Vec<_> =
            (0..READERS).map(|reader| scope.spawn(move || read(store, records, questions, stop, asked, seed ^ reader))).collect();
        let mut changes = 0;
        let outcome = (|| -> Result<()> {
            while started.elapsed() < Duration::from_secs(seconds) && !readers.iter().any(|reader| reader.is_finished()) {
                change(store, records, &mut random)?;
                changes += 1;
            }
            Ok(())
        })();
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().map_err(|_| Error::internal(format!("a reader failed; seed {seed}")))??;
        }
        outcome.map(|()| changes)
    })?;
    sealer.stop()?;
    // The same once more from the disk.
    drop(store);
    let again = Store::open(&path)?;
    for (query, right) in &questions {
        compare(&again, query, right)?;
    }
    let secs = started.elapsed().as_secs_f64();
    Figure::new("stress: changes of layers, merges and puts", changes as f64, "changes", Bar::AtLeast(1.0)).print();
    let what = format!("stress: answers checked against brute force in {secs:.0} s, all right");
    Figure::new(what, asked.load(Ordering::Relaxed) as f64, "answers", Bar::AtLeast(1.0)).print();
    Ok(())
}

fn data(random: &mut StdRng) -> Answers {
    let mut records = BTreeMap::new();
    for key in 0..RECORDS {
        let word: String = (0..random.random_range(0..8)).map(|_| ['a', 'b', 'c', 'ü'][random.random_range(0..4)]).collect();
        let bytes: Vec<u8> = (0..random.random_range(0..5)).map(|_| random.random()).collect();
        let number = if random.random_bool(0.02) { Value::Null } else { Value::Int(random.random_range(-500..500)) };
        records.insert(key * 3, vec![Value::Text(word), Value::Bytes(bytes), number]);
    }
    let mut questions = Vec::new();
    for _ in 0..300 {
        let values = &records[&(random.random_range(0..RECORDS) * 3)];
        let (Value::Text(word), Value::Bytes(bytes)) = (&values[0], &values[1]) else { unreachable!() };
        let word = word.clone();
        let (query, meets): (Query, Meets) = match random.random_range(0..5) {
            0 => {
                let wanted = values[0].clone();
                (Query::Eq { attribute: 0, value: wanted.clone() }, Box::new(move |values| values[0] == wanted))
            }
            1 => {
                let wanted = values[1].clone();
                (Query::Eq { attribute: 1, value: Value::Bytes(bytes.clone()) }, Box::new(move |values| values[1] == wanted))
            }
            2 => {
                let wanted = values[2].clone();
                (Query::Eq { attribute: 2, value: wanted.clone() }, Box::new(move |values| values[2] == wanted))
            }
            3 => (
                Query::prefix(0, &word),
                Box::new(move |values| matches!(&values[0], Value::Text(text) if text.starts_with(&word))),
            ),
            _ => (
                Query::contains(0, &word),
                Box::new(move |values| matches!(&values[0], Value::Text(text) if text.contains(&word))),
            ),
        };
        let right = records.iter().filter(|(_, values)| meets(values)).map(|(key, _)| Key::U64(*key)).collect();
        questions.push((query, right));
    }
    (records, questions)
}

fn compare(store: &Store, query: &Query, right: &[Key]) -> Result<()> {
    let found = store.search_query(query, None, None)?;
    if found != right {
        return Err(Error::internal(format!("{query:?}: {} keys found, {} are right", found.len(), right.len())));
    }
    Ok(())
}

fn read(
    store: &Store,
    records: &BTreeMap<u64, Vec<Value>>,
    questions: &[(Query, Vec<Key>)],
    stop: &AtomicBool,
    asked: &AtomicU64,
    seed: u64,
) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::Relaxed) {
        let (query, right) = &questions[random.random_range(0..questions.len())];
        compare(store, query, right)?;
        if store.count_query(query)? != right.len() as u64 {
            return Err(Error::internal(format!("{query:?} is counted wrongly")));
        }
        for _ in 0..20 {
            let key = random.random_range(0..RECORDS * 3 + 3);
            if store.get(&Key::U64(key), None)?.as_ref() != records.get(&key) {
                return Err(Error::internal(format!("the record of {key} is wrong")));
            }
        }
        asked.fetch_add(22, Ordering::Relaxed);
    }
    Ok(())
}

fn change(store: &Store, records: &BTreeMap<u64, Vec<Value>>, random: &mut StdRng) -> Result<()> {
    match random.random_range(0..10) {
        0..4 => store.tune_with(random.random_range(0.3..3.5), 2),
        4..6 => {
            // Some of what is there goes, and is filled by the readers from then on where that can be.
            let there: Vec<_> = store.layers().iter().map(|layer| layer.id).filter(|_| random.random_bool(0.3)).collect();
            store.drop_layers(&there)?;
            use forebay_shard::LayerKind::{IsaAttribute, SaAttribute};
            let filled: Vec<_> = there.into_iter().filter(|id| matches!(id.kind, IsaAttribute | SaAttribute)).collect();
            store.fill_layers(&filled)?;
            std::thread::sleep(Duration::from_millis(random.random_range(0..300)));
            Ok(())
        }
        6..9 => {
            let keys = (0..random.random_range(1..200)).map(|_| random.random_range(0..RECORDS) * 3);
            store.change(keys.map(|key| Change::Put(Key::U64(key), records[&key].clone())).collect())
        }
        _ => store.merge(),
    }
}
