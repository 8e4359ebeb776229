//! What the audit log is told of calls at the ports of scheduler and executors.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::{AdminRequest, Security};
use forebay_transport::{AUDIT, Admission, Credential};
use forebay_types::{Grant, MountOptions, Role};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::bed::Bed;
use crate::calls::{EXECUTOR, FLIGHT, SCHEDULER, call, way};

/// What the audit log of this process is told: the fields of each event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

impl Subscriber for Log {
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
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_administers_and_who_was_refused_stands_in_the_audit_log() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let (owner, member) =
        (Credential::owner("a secret of this cluster").unwrap(), Credential::member("one of processes").unwrap());
    let admits = Arc::new(Admission::of([&owner, &member]));
    let security = Security { shows: Some(owner), admits: Arc::clone(&admits), tls: None };
    let bed = Bed::secured(1, MountOptions::default(), true, security).await;
    let mut tokens = Vec::new();
    // Names that no other test of this process has.
    for (name, role) in [("audited-reader", Role::Read), ("audited-admin", Role::Admin)] {
        let (token, grant) = (Credential::generate(name, 1).unwrap(), Grant::everywhere(role));
        bed.client.control(AdminRequest::TokenAdd { name: name.to_string(), grant, keys: token.keys() }).await.unwrap();
        while admits.caller(&token).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokens.push(token);
    }
    let [reader, admin] = &tokens[..] else { panic!("two were made") };
    let (scheduler, executor) = (bed.scheduler_at(), bed.executors[0].as_ref().unwrap().address());
    for (port, who, service, method) in [
        (scheduler, admin, SCHEDULER, "CleanJobData"),
        (scheduler, admin, SCHEDULER, "PollWork"),
        (scheduler, reader, SCHEDULER, "GetJobStatus"),
        (scheduler, reader, SCHEDULER, "CleanJobData"),
        (scheduler, reader, FLIGHT, "ListActions"),
        (executor, reader, EXECUTOR, "CancelTasks"),
        (executor, reader, FLIGHT, "DoAction"),
    ] {
        call(&way(port, who).await.unwrap(), service, method).await;
    }
    let told: Vec<_> = log.0.lock().iter().filter(|event| event["port"] == "cluster").cloned().collect();
    let told: Vec<_> = told.iter().filter(|event| event["who"].contains("audited-")).collect();
    let lines: Vec<_> = told.iter().map(|event| ["who", "what", "on", "verdict"].map(|field| event[field].as_str())).collect();
    let of = |service: &str, method: &str| format!("{service}/{method}");
    let (clean, poll, cancel) = (of(SCHEDULER, "CleanJobData"), of(SCHEDULER, "PollWork"), of(EXECUTOR, "CancelTasks"));
    let (admin, reader) = ("token audited-admin.1", "token audited-reader.1");
    let expected = [
        [admin, "call", &clean, "allowed"],
        [admin, "call", &poll, "refused"],
        // That he reads is not told.
        [reader, "call", &clean, "refused"],
        [reader, "call", &cancel, "refused"],
    ];
    assert_eq!(lines, expected);
    for event in told {
        assert!(event["from"].starts_with("127.0.0.1:"), "{event:?}");
        assert_eq!(event.contains_key("why"), event["verdict"] == "refused", "{event:?}");
    }
}
