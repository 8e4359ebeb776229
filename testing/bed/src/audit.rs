//! The audit log's lines, as fields.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use forebay_transport::{AUDIT, begin_audit};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The fields of an event.
pub type Told = BTreeMap<&'static str, String>;

/// What the audit log of this process is told.
#[derive(Clone, Default)]
pub struct AuditLog(Arc<Mutex<Vec<Told>>>);

impl AuditLog {
    /// Listens from now on. One test of a process may.
    pub fn listen() -> Self {
        let log = Self::default();
        tracing::subscriber::set_global_default(log.clone()).unwrap();
        begin_audit();
        log
    }

    /// All events until now.
    pub fn told(&self) -> Vec<Told> {
        self.0.lock().clone()
    }
}

impl Subscriber for AuditLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == AUDIT
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().push(fields.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(Told);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_string());
    }
}
