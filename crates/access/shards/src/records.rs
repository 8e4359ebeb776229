//! Records by their keys.

use bytes::Bytes;
use forebay_client::WantedRecords;
use forebay_shard::{Key, Record, Value};
use forebay_shard_store::{Condition, Filter, Literal, SentRecord, Wanted, read_records, write_keys};
use forebay_types::{Error, ErrorKind, Result};
use futures::future::try_join_all;
use serde_json::Value as Json;

use crate::Shards;
use crate::follow::at_present;

/// Records that are asked of a shard with one call.
const GETS_AT_ONCE: usize = 1000;

impl Shards {
    /// A record as a JSON object: the columns asked for by name, or all; none where the key has no record.
    pub async fn get(&self, key: &Literal, columns: Option<&[String]>) -> Result<Option<Json>> {
        let key = self.columns().key_of(key)?;
        let places = columns.map(|names| self.attributes_of(names)).transpose()?;
        let record = self.record(&key, places.as_deref()).await?;
        record.map(|record| self.record_json(&key, &record, columns.zip(places.as_deref()))).transpose()
    }

    /// Records in the order of the keys: one call for those of a shard.
    pub async fn get_many(&self, keys: &[Key], columns: Option<&[String]>) -> Result<Vec<Option<Json>>> {
        let places = columns.map(|names| self.attributes_of(names)).transpose()?;
        let records = self.records(keys, places.as_deref()).await?;
        let json = |(key, record): (&Key, Option<Record>)| {
            record.map(|record| self.record_json(key, &record, columns.zip(places.as_deref()))).transpose()
        };
        keys.iter().zip(records).map(json).collect()
    }

    /// The records of keys that a search found, in their order, and of how many keys they are: of all, or of the first ones where all are too
    /// much for one answer, as the columns of the condition are read too. Those are left out that do not meet it any more: records may be
    /// changed and deleted between the search and this. Whoever wants as many as were found searches on behind the last key.
    pub async fn get_found(&self, keys: &[Key], condition: &Json, columns: &[String]) -> Result<(usize, Vec<Json>)> {
        let condition = Condition::from_json(condition)?;
        let mut places = self.attributes_of(columns)?;
        places.extend(Filter::attributes(&condition, self.columns())?);
        places.sort_unstable();
        places.dedup();
        let (read, records) = as_many(keys.len(), |first| self.records(&keys[..first], Some(places.as_slice()))).await?;
        debug_assert!(read <= keys.len() && records.len() == read, "each key that was read has its place");
        // Beside what waits for nothing: a condition may be long in its compiling, and in its look at each.
        let (shards, keys, columns) = (self.clone(), keys[..read].to_vec(), columns.to_vec());
        let looking = forebay_runtime::spawn_blocking(move || shards.that_meet(&condition, &keys, records, &places, &columns));
        let found = looking.await.map_err(|error| Error::internal(format!("looking at records ended early: {error}")))??;
        Ok((read, found))
    }

    /// Of the records of keys, whose values are those at `places`, the columns of those that meet a condition.
    fn that_meet(
        &self,
        condition: &Condition,
        keys: &[Key],
        records: Vec<Option<Record>>,
        places: &[usize],
        columns: &[String],
    ) -> Result<Vec<Json>> {
        let filter = Filter::new(condition, self.columns())?;
        let mut found = Vec::with_capacity(keys.len());
        for (key, record) in keys.iter().zip(records) {
            let Some(record) = record else { continue };
            let values = self.values_at(&record, places)?;
            if filter.holds(&values) {
                found.push(self.columns().record_json(key, &values, Some(columns))?);
            }
        }
        Ok(found)
    }

    /// The record of a key in the bytes that shards keep: those of some attributes by their places, or of all.
    /// [`Record::values`] makes values of it, with [`Columns::schema`](forebay_shard_store::Columns::schema).
    pub async fn record(&self, key: &Key, attributes: Option<&[usize]>) -> Result<Option<Record>> {
        let wanted = Wanted::new(self.columns(), attributes.map(<[usize]>::to_vec), false)?;
        Ok(self.record_of(key, &wanted).await?.record)
    }

    /// The record of a key as it was sent.
    pub(crate) async fn record_of(&self, key: &Key, wanted: &Wanted) -> Result<SentRecord> {
        let keys = [key];
        let sent = at_present!(self, at => at.records_of(at.dataset.shard_of(key), &keys, wanted));
        sent?.pop().ok_or_else(|| self.misfit())
    }

    /// The same of many keys, in their order: one call for those of a shard.
    pub async fn records(&self, keys: &[Key], attributes: Option<&[usize]>) -> Result<Vec<Option<Record>>> {
        let wanted = Wanted::new(self.columns(), attributes.map(<[usize]>::to_vec), false)?;
        at_present!(self, at => at.records_by_shard(keys, &wanted))
    }

    async fn records_by_shard(&self, keys: &[Key], wanted: &Wanted) -> Result<Vec<Option<Record>>> {
        let mut by_shard = vec![Vec::new(); self.dataset.shards.len()];
        for (place, key) in keys.iter().enumerate() {
            by_shard[self.dataset.shard_of(key)].push(place);
        }
        let calls = by_shard.iter().enumerate().flat_map(|(shard, places)| {
            places.chunks(GETS_AT_ONCE).map(move |places| async move {
                let keys: Vec<&Key> = places.iter().map(|place| &keys[*place]).collect();
                Ok::<_, Error>((places, self.records_of(shard, &keys, wanted).await?))
            })
        });
        let mut records = vec![None; keys.len()];
        for (places, answers) in try_join_all(calls).await? {
            debug_assert_eq!(answers.len(), places.len(), "each key has its answer");
            for (place, answer) in places.iter().zip(answers) {
                records[*place] = answer.record;
            }
        }
        Ok(records)
    }

    /// Records of one shard, with one call.
    pub(crate) async fn records_of(&self, shard: usize, keys: &[&Key], wanted: &Wanted) -> Result<Vec<SentRecord>> {
        debug_assert!(!keys.is_empty(), "a call asks for something");
        let mut bytes = Vec::with_capacity(keys.iter().map(|key| key.len() + 4).sum());
        write_keys(keys.iter().copied(), &mut bytes);
        let (bytes, attributes) = (Bytes::from(bytes), wanted.places());
        let of = WantedRecords { dataset: &self.id, shard: shard as u32, attributes: &attributes, versioned: wanted.versioned };
        let ask =
            |worker, within| self.ask_worker(worker, shard, self.client.shards().records(worker, &of, bytes.clone(), within));
        let answers = self.until_answered(|| self.whom_to_ask(shard), ask).await?;
        read_records(&answers, keys.len(), self.columns(), wanted).map_err(|error| error.context(&self.path))
    }

    /// A record as a JSON object: of the columns with these names, whose attributes the record has, or of all.
    pub(crate) fn record_json(&self, key: &Key, record: &Record, asked: Option<(&[String], &[usize])>) -> Result<Json> {
        let Some((names, places)) = asked else { return Ok(self.columns().whole_json(key, record.values(&self.schema, None)?)) };
        self.columns().record_json(key, &self.values_at(record, places)?, Some(names))
    }

    /// A value for each attribute: those that the record has, at `places`, and null for the others.
    fn values_at(&self, record: &Record, places: &[usize]) -> Result<Vec<Value>> {
        let mut values = vec![Value::Null; self.schema.attributes.len()];
        for (value, place) in record.values(&self.schema, Some(places))?.into_iter().zip(places) {
            values[*place] = value;
        }
        Ok(values)
    }

    /// The attributes that are read for some columns: one at least, also where only the key is asked for.
    fn attributes_of(&self, names: &[String]) -> Result<Vec<usize>> {
        let key = self.columns().key_place();
        let places = names.iter().map(|name| self.columns().place(name)).collect::<Result<Vec<_>>>()?;
        let mut attributes: Vec<usize> =
            places.into_iter().filter(|place| *place != key).map(|place| place - usize::from(place > key)).collect();
        attributes.sort_unstable();
        attributes.dedup();
        debug_assert!(attributes.iter().all(|place| *place < self.schema.attributes.len()), "the key is no attribute");
        if attributes.is_empty() {
            attributes.push(0);
        }
        Ok(attributes)
    }

    pub(crate) fn misfit(&self) -> Error {
        Error::internal(format!("{}: an answer does not fit its question", self.path))
    }
}

/// What is answered of `all` things, or of the first ones: half as many as long as they are refused, down to one.
async fn as_many<T, A: Future<Output = Result<T>>>(all: usize, ask: impl Fn(usize) -> A) -> Result<(usize, T)> {
    let mut first = all;
    loop {
        match ask(first).await {
            // Too large for one answer; what else is wrong with it is told of one as well.
            Err(error) if error.kind() == ErrorKind::Invalid && first > 1 => first /= 2,
            answer => return answer.map(|answer| (first, answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_too_much_for_one_answer_is_asked_in_parts() {
        let most = |most: usize| {
            move |first: usize| async move { if first > most { Err(Error::invalid("too much")) } else { Ok("answer") } }
        };
        assert_eq!(as_many(1000, most(1000)).await.unwrap(), (1000, "answer"));
        assert_eq!(as_many(1000, most(300)).await.unwrap(), (250, "answer"));
        assert_eq!(as_many(3, most(1)).await.unwrap(), (1, "answer"));
        assert_eq!(as_many(0, most(0)).await.unwrap(), (0, "answer"));
        assert_eq!(as_many(1000, most(0)).await.unwrap_err().kind(), ErrorKind::Invalid, "one is too much");
        let late = |_| async { Err::<(), _>(Error::retry("late")) };
        assert_eq!(as_many(1000, late).await.unwrap_err().kind(), ErrorKind::Retry);
    }
}
