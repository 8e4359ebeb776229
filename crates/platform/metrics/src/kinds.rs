//! A value for each word of a list that is known beforehand.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::family::Family;
use crate::value::Value;

/// The values of a metric whose one label is a word of a fixed list: found without a lock, and there only once they were wanted.
pub struct Kinds<V: 'static> {
    family: &'static Family<V, 1>,
    values: HashMap<&'static str, OnceLock<Arc<V>>>,
}

impl<V: Value> Kinds<V> {
    /// Of these words.
    pub fn new(family: &'static Family<V, 1>, words: &[&'static str]) -> Self {
        Self { family, values: words.iter().map(|word| (*word, OnceLock::new())).collect() }
    }

    /// The value for a word. None for one that is not on the list, so that words from outside become no series.
    pub fn of(&self, word: &str) -> Option<&V> {
        let value = self.values.get(word)?;
        Some(value.get_or_init(|| self.family.with([word])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::WORKER_REPLICAS_LOADED;

    #[test]
    fn words_that_are_not_on_the_list_become_no_series() {
        let kinds = Kinds::new(&WORKER_REPLICAS_LOADED, &["storage", "peer"]);
        kinds.of("peer").expect("on the list").add(2);
        assert!(kinds.of("elsewhere").is_none());
        assert!(WORKER_REPLICAS_LOADED.with(["peer"]).get() >= 2);
    }
}
