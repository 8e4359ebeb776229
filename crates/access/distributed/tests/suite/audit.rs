//! What the audit log is told of calls at the ports of scheduler and executors.

use std::sync::Arc;

use forebay_client::{AdminRequest, Security};
use forebay_testbed::{EventLog, until};
use forebay_transport::{Admission, Credential};
use forebay_types::{Grant, MountOptions, Role};

use crate::bed::Bed;
use crate::calls::{EXECUTOR, FLIGHT, SCHEDULER, call, way};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_administers_and_who_was_refused_stands_in_the_audit_log() {
    let log = EventLog::of_audit();
    let (owner, member) =
        (Credential::owner("a secret of this cluster").unwrap(), Credential::member("one of processes").unwrap());
    let admits = Arc::new(Admission::of([&owner, &member]));
    let security = Security { shows: Some(owner), admits: Arc::clone(&admits), tls: None, ..Security::default() };
    let bed = Bed::secured(1, MountOptions::default(), true, security).await;
    let mut tokens = Vec::new();
    // Names that no other test of this process has.
    for (name, role) in [("audited-reader", Role::Read), ("audited-admin", Role::Admin)] {
        let (token, grant) = (Credential::generate(name, 1).unwrap(), Grant::everywhere(role));
        bed.client.control(AdminRequest::TokenAdd { name: name.to_string(), grant, keys: token.keys() }).await.unwrap();
        until("it is known", || admits.caller(&token).is_ok()).await;
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
    let told: Vec<_> = log.told().into_iter().filter(|event| event["port"] == "cluster").collect();
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
