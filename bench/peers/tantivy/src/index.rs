//! The records as an index, as one would make it for what is asked: each value a term of its attribute, one attribute by trigrams as well, no
//! scores, one segment, mapped from files.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Bound;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{BooleanQuery, EnableScoring, InvertedIndexRangeQuery, PhraseQuery, Query, RegexQuery, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::{DocAddress, DocId, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, Term};

use crate::Result;
use crate::grams::{GRAM, Grams};

/// Bytes that a segment may take until it is written.
const WRITER_BYTES: usize = 1_000_000_000;
/// The name of the tokenizer.
const GRAMS: &str = "grams";

/// One question.
#[derive(Deserialize)]
pub struct Question {
    /// By place.
    attribute: usize,
    what: What,
}

/// What has to hold of the attribute's value.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Equals(String),
    Prefix(String),
    Contains(String),
    /// A match of a pattern somewhere; the parts are texts that every match has in it.
    Regex {
        pattern: String,
        parts: Vec<String>,
    },
}

/// An index, open.
pub struct Index {
    searcher: Searcher,
    /// The keys of documents.
    keys: Box<dyn Fn(&[DocId], &mut [u64])>,
    attributes: Vec<Field>,
    /// The attribute that has trigrams, by place, and their field.
    grams: Option<(usize, Field)>,
    bytes: u64,
}

impl Index {
    /// Builds it in a folder.
    pub fn build(records: &Path, folder: &Path, grams: Option<&str>) -> Result<Self> {
        let mut lines = BufReader::new(File::open(records)?).lines();
        let names: Vec<String> = serde_json::from_str(&lines.next().ok_or("the file of records is empty")??)?;
        let mut schema = Schema::builder();
        let key = schema.add_u64_field("key", FAST);
        let attributes: Vec<Field> = names.iter().map(|name| schema.add_text_field(name, whole().set_stored())).collect();
        let grams = match grams {
            None => None,
            Some(name) => {
                let place = names.iter().position(|other| other == name).ok_or("no attribute has the name")?;
                Some((place, schema.add_text_field(&format!("{name}_grams"), by_grams())))
            }
        };
        // What is stored is read for regular expressions alone, and others with the same bytes have more for the rest.
        let docstore_compression = Compressor::Zstd(ZstdCompressor { compression_level: Some(3) });
        let settings = IndexSettings { docstore_compression, ..IndexSettings::default() };
        let index = tantivy::Index::builder().schema(schema.build()).settings(settings).create_in_dir(folder)?;
        index.tokenizers().register(GRAMS, Grams::default());

        let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for line in lines {
            let (number, values): (u64, Vec<String>) = serde_json::from_str(&line?)?;
            if values.len() != attributes.len() || !values.iter().all(|value| value.is_ascii()) {
                return Err(format!("record {number} has not a value in ASCII of each attribute").into());
            }
            let mut document = TantivyDocument::default();
            document.add_u64(key, number);
            for (field, value) in attributes.iter().zip(&values) {
                document.add_text(*field, value);
            }
            if let Some((place, field)) = grams {
                document.add_text(field, &values[place]);
            }
            writer.add_document(document)?;
        }
        writer.commit()?;
        let segments = index.searchable_segment_ids()?;
        if segments.len() > 1 {
            writer.merge(&segments).wait()?;
        }
        writer.garbage_collect_files().wait()?;
        writer.wait_merging_threads()?;

        let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        if searcher.segment_readers().len() != 1 {
            return Err(format!("{} segments, not one", searcher.segment_readers().len()).into());
        }
        let column = searcher.segment_reader(0).fast_fields().u64("key")?;
        let keys = Box::new(move |docs: &[DocId], keys: &mut [u64]| column.values.get_vals(docs, keys));
        Ok(Self { searcher, keys, attributes, grams, bytes: folder_bytes(folder)? })
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The keys of the records where it holds, in whatever order.
    pub fn search(&self, question: &Question) -> Result<Vec<u64>> {
        let field = *self.attributes.get(question.attribute).ok_or("there is no such attribute")?;
        let grams = self.grams.filter(|(place, _)| *place == question.attribute).map(|(_, grams)| grams);
        match (&question.what, grams) {
            (What::Equals(value), _) => self.keys(&term(field, value)),
            (What::Prefix(prefix), _) => {
                let from = Bound::Included(Term::from_field_text(field, prefix));
                let to = Bound::Excluded(Term::from_field_text(field, &after(prefix)?));
                self.keys(&InvertedIndexRangeQuery::new(from, to))
            }
            (What::Contains(text), Some(grams)) if text.len() >= GRAM => self.keys(&*phrase(grams, text)),
            (What::Contains(text), _) => self.keys(&anywhere(field, &regex::escape(text))?),
            (What::Regex { pattern, parts }, Some(grams)) if parts.iter().any(|part| part.len() >= GRAM) => {
                let parts = parts.iter().filter(|part| part.len() >= GRAM).map(|part| phrase(grams, part));
                self.verified(&BooleanQuery::intersection(parts.collect()), field, &Regex::new(pattern)?)
            }
            (What::Regex { pattern, .. }, _) => self.keys(&anywhere(field, pattern)?),
        }
    }

    fn keys(&self, query: &dyn Query) -> Result<Vec<u64>> {
        let mut keys = Vec::new();
        self.each(query, |docs| self.take(docs, &mut keys))?;
        Ok(keys)
    }

    /// Of documents whose stored value has a match.
    fn verified(&self, query: &dyn Query, field: Field, pattern: &Regex) -> Result<Vec<u64>> {
        let (mut docs, mut keys) = (Vec::new(), Vec::new());
        self.each(query, |found| docs.extend_from_slice(found))?;
        let mut right = Vec::with_capacity(docs.len());
        for doc in docs {
            let document: TantivyDocument = self.searcher.doc(DocAddress::new(0, doc))?;
            if document.get_first(field).and_then(|value| value.as_str()).is_some_and(|text| pattern.is_match(text)) {
                right.push(doc);
            }
        }
        self.take(&right, &mut keys);
        Ok(keys)
    }

    /// Hands over all documents where a query holds, some at a time.
    fn each(&self, query: &dyn Query, mut found: impl FnMut(&[DocId])) -> Result<()> {
        let weight = query.weight(EnableScoring::disabled_from_searcher(&self.searcher))?;
        Ok(weight.for_each_no_score(self.searcher.segment_reader(0), &mut found)?)
    }

    fn take(&self, docs: &[DocId], keys: &mut Vec<u64>) {
        let from = keys.len();
        keys.resize(from + docs.len(), 0);
        (self.keys)(docs, &mut keys[from..]);
    }
}

/// A value is one term.
fn whole() -> TextOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer("raw").set_index_option(IndexRecordOption::Basic);
    TextOptions::default().set_indexing_options(indexing.set_fieldnorms(false))
}

fn by_grams() -> TextOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer(GRAMS).set_index_option(IndexRecordOption::WithFreqsAndPositions);
    TextOptions::default().set_indexing_options(indexing.set_fieldnorms(false))
}

fn term(field: Field, text: &str) -> TermQuery {
    TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic)
}

/// The least text that is above all that begin with a prefix.
fn after(prefix: &str) -> Result<String> {
    let mut bytes = prefix.as_bytes().to_vec();
    *bytes.last_mut().ok_or("a prefix is not empty")? += 1;
    Ok(String::from_utf8(bytes)?)
}

/// As few grams as cover the text, each at its place: where all of them are there, the text is.
fn phrase(grams: Field, text: &str) -> Box<dyn Query> {
    let last = text.len() - GRAM;
    if last == 0 {
        return Box::new(term(grams, text));
    }
    let places = (0..last).step_by(GRAM).chain(std::iter::once(last));
    let terms = places.map(|at| (at, Term::from_field_text(grams, &text[at..at + GRAM])));
    Box::new(PhraseQuery::new_with_offset(terms.collect()))
}

/// A scan of the attribute's terms by an automaton, which the whole of a term has to go through.
fn anywhere(field: Field, pattern: &str) -> Result<RegexQuery> {
    Ok(RegexQuery::from_pattern(&format!(".*({pattern}).*"), field)?)
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    const WORDS: [&str; 7] = ["quick", "brown", "packages", "sleep (again)", "quietly", "bold", "aaaa"];

    /// A code and a text of each record.
    fn values(key: usize) -> (String, String) {
        let word = |at: usize| WORDS[key * 7919 / (at * 3 + 1) % WORDS.len()];
        (format!("code-{}", key % 90), format!("{} {} {}", word(0), word(1), word(2)))
    }

    #[test]
    fn every_question_finds_what_a_look_at_all_records_finds() {
        let folder = tempfile::tempdir().unwrap();
        let (records, index) = (folder.path().join("records"), folder.path().join("index"));
        let mut text = String::from("[\"code\",\"text\"]\n");
        for key in 0..500 {
            let (code, comment) = values(key);
            writeln!(text, "[{key},[\"{code}\",\"{comment}\"]]").unwrap();
        }
        std::fs::write(&records, text).unwrap();
        let keys = |holds: &dyn Fn(&str, &str) -> bool| -> Vec<u64> {
            let holds = |key: &usize| holds(&values(*key).0, &values(*key).1);
            (0..500).filter(holds).map(|key| key as u64).collect()
        };
        let part = |text: &str| What::Contains(text.into());
        let pattern = Regex::new("ui.*bold").unwrap();
        let regex = What::Regex { pattern: pattern.to_string(), parts: vec!["ui".into(), "bold".into()] };
        let questions = [
            (0, What::Equals("code-7".into()), keys(&|code, _| code == "code-7")),
            (0, What::Prefix("code-7".into()), keys(&|code, _| code.starts_with("code-7"))),
            (1, What::Equals("code-7".into()), Vec::new()),
            (1, part("ck"), keys(&|_, text| text.contains("ck"))),
            (1, part("ick"), keys(&|_, text| text.contains("ick"))),
            (1, part("aaaa"), keys(&|_, text| text.contains("aaaa"))),
            (1, part("(again) b"), keys(&|_, text| text.contains("(again) b"))),
            (1, part("s quiet"), keys(&|_, text| text.contains("s quiet"))),
            (1, part("quixk"), Vec::new()),
            (1, regex, keys(&|_, text| pattern.is_match(text))),
        ]
        .map(|(attribute, what, keys)| (Question { attribute, what }, keys));
        for grams in [None, Some("text")] {
            std::fs::create_dir(&index).unwrap();
            let built = Index::build(&records, &index, grams).unwrap();
            for (at, (question, expected)) in questions.iter().enumerate() {
                let mut found = built.search(question).unwrap();
                found.sort_unstable();
                assert_eq!(found, *expected, "question {at}, {grams:?}");
            }
            assert!(questions.iter().filter(|(_, keys)| !keys.is_empty()).count() >= 7);
            assert!(built.bytes() > 500);
            drop(built);
            std::fs::remove_dir_all(&index).unwrap();
        }
    }
}
