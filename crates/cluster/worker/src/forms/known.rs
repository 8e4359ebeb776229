//! What readers take text files for.

use std::num::NonZeroUsize;
use std::sync::Arc;

use forebay_types::{FormId, TextForm};
use lru::LruCache;
use parking_lot::Mutex;

/// Forms remembered; those named longest ago are forgotten first.
const FORMS_MAX: usize = 1024;

/// What readers take text files for: cells are named by a form's id, and made by the form.
pub(crate) struct KnownForms(Mutex<LruCache<FormId, Arc<TextForm>>>);

impl Default for KnownForms {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(NonZeroUsize::new(FORMS_MAX).expect("not 0"))))
    }
}

impl KnownForms {
    pub(crate) fn get(&self, id: FormId) -> Option<Arc<TextForm>> {
        self.0.lock().get(&id).cloned()
    }

    /// Remembers a form that has been checked.
    pub(crate) fn put(&self, id: FormId, form: &Arc<TextForm>) {
        self.0.lock().get_or_insert(id, || Arc::clone(form));
    }
}
