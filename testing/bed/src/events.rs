//! What is told to the logs of this process, as fields.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use forebay_transport::{AUDIT, begin_audit};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// The fields of an event.
pub type Told = BTreeMap<&'static str, String>;

/// The events of one target.
#[derive(Clone)]
pub struct EventLog {
    target: &'static str,
    told: Arc<Mutex<Vec<Told>>>,
}

impl EventLog {
    /// The audit log of this process, from the first call on: its tests have it together.
    pub fn of_audit() -> Self {
        static LOG: LazyLock<EventLog> = LazyLock::new(|| {
            let log = EventLog::of(AUDIT);
            tracing::subscriber::set_global_default(log.clone()).unwrap();
            begin_audit();
            log
        });
        LOG.clone()
    }

    /// What this thread tells a target, as long as the guard lives.
    pub fn of_thread(target: &'static str) -> (Self, DefaultGuard) {
        let log = Self::of(target);
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    fn of(target: &'static str) -> Self {
        Self { target, told: Arc::default() }
    }

    /// All events until now.
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().clone()
    }
}

impl Subscriber for EventLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == self.target
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.told.lock().push(fields.0);
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
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_string());
    }
}
