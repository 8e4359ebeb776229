//! Who may make which call at the ports of scheduler and executors: real ports, real credentials, every call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use forebay_client::{AdminRequest, Security};
use forebay_transport::{Admission, Credential, Guarded, unix_now};
use forebay_types::{Grant, MountOptions, Role, Scope};
use tokio::net::TcpListener;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::bed::Bed;

const SCHEDULER: &str = "/ballista.protobuf.SchedulerGrpc";
const EXECUTOR: &str = "/ballista.protobuf.ExecutorGrpc";
const FLIGHT: &str = "/arrow.flight.protocol.FlightService";

/// What a call asks of who makes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Reads,
    Serves,
    Administers,
    Nobody,
}

use Class::{Administers, Nobody, Reads, Serves};

const AT_SCHEDULER: [(&str, &str, Class); 19] = [
    (SCHEDULER, "PollWork", Serves),
    (SCHEDULER, "RegisterExecutor", Serves),
    (SCHEDULER, "HeartBeatFromExecutor", Serves),
    (SCHEDULER, "UpdateTaskStatus", Serves),
    (SCHEDULER, "ExecutorStopped", Serves),
    (SCHEDULER, "ExecuteQuery", Reads),
    (SCHEDULER, "ExecuteQueryPush", Reads),
    (SCHEDULER, "GetJobStatus", Reads),
    (SCHEDULER, "GetJobMetrics", Reads),
    (SCHEDULER, "CancelJob", Reads),
    (SCHEDULER, "CreateUpdateSession", Reads),
    (SCHEDULER, "RemoveSession", Reads),
    (SCHEDULER, "CleanJobData", Administers),
    (SCHEDULER, "LaunchTask", Nobody),
    (FLIGHT, "DoAction", Reads),
    (FLIGHT, "ListActions", Reads),
    (FLIGHT, "DoGet", Nobody),
    (FLIGHT, "Handshake", Nobody),
    (FLIGHT, "DoPut", Nobody),
];

const AT_EXECUTOR: [(&str, &str, Class); 11] = [
    (EXECUTOR, "LaunchTask", Serves),
    (EXECUTOR, "LaunchMultiTask", Serves),
    (EXECUTOR, "StopExecutor", Serves),
    (EXECUTOR, "CancelTasks", Serves),
    (EXECUTOR, "RemoveJobData", Serves),
    (EXECUTOR, "PollWork", Nobody),
    (FLIGHT, "DoGet", Reads),
    (FLIGHT, "DoAction", Serves),
    (FLIGHT, "ListActions", Nobody),
    (FLIGHT, "DoPut", Nobody),
    (FLIGHT, "DoExchange", Nobody),
];

/// Messages without a field, whatever they are called.
#[derive(Default)]
struct Empty;

impl Codec for Empty {
    type Encode = ();
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Empty {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for Empty {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        bytes.advance(bytes.remaining());
        Ok(Some(()))
    }
}

/// A way to a port for who shows this, or none where the port lets nobody in who does.
async fn way(port: SocketAddr, shows: &Credential) -> Option<Channel> {
    let security = Security::holder(shows.clone());
    Guarded::connect(&port.to_string(), &security).await.ok()?;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let Ok(mut far) = Guarded::connect(&port.to_string(), &security).await else { return };
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    Some(Endpoint::from_shared(format!("http://{near}")).unwrap().connect_lazy())
}

/// Whether the port carries the call out, or tries to.
async fn goes_through(channel: &Channel, service: &str, method: &str) -> bool {
    let mut grpc = Grpc::new(channel.clone());
    if grpc.ready().await.is_err() {
        return false;
    }
    let path: PathAndQuery = format!("{service}/{method}").parse().unwrap();
    match grpc.server_streaming(Request::new(()), path, Empty).await {
        Ok(_) => true,
        // What breaks the connection is no answer to the call.
        Err(status) => status.code() != Code::PermissionDenied && std::error::Error::source(&status).is_none(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_credential_makes_the_calls_of_its_right_and_no_other() {
    let owner = Credential::owner("a secret of this cluster").unwrap();
    let member = Credential::member("a secret of its processes").unwrap();
    let admits = Arc::new(Admission::of([&owner, &member]));
    let security = Security { shows: Some(owner.clone()), admits: Arc::clone(&admits), tls: None };
    let bed = Bed::secured(1, MountOptions::default(), true, security).await;
    let of_a_mount = Scope::Only { mounts: vec!["lake".parse().unwrap()], temporary: false };
    let mut tokens = Vec::new();
    for (name, grant) in [
        ("reader", Grant::everywhere(Role::Read)),
        ("writer", Grant::everywhere(Role::Write)),
        ("administrator", Grant::everywhere(Role::Admin)),
        ("of-a-mount", Grant { role: Role::Admin, scope: of_a_mount, expires: None }),
        ("late", Grant { expires: Some(unix_now() + 1), ..Grant::everywhere(Role::Admin) }),
    ] {
        let token = Credential::generate(name, 1).unwrap();
        bed.client.control(AdminRequest::TokenAdd { name: name.to_string(), grant, keys: token.keys() }).await.unwrap();
        while admits.caller(&token).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokens.push(token);
    }
    let [reader, writer, admin, of_a_mount, late] = &tokens[..] else { panic!("five were made") };
    tokio::time::sleep(Duration::from_secs(2)).await;
    let stranger = Credential::owner("a secret of another cluster").unwrap();
    let may: [(&str, &Credential, &[Class]); 8] = [
        ("owner", &owner, &[Reads, Serves, Administers]),
        ("member", &member, &[Reads, Serves]),
        ("reader", reader, &[Reads]),
        ("writer", writer, &[Reads]),
        ("administrator", admin, &[Reads, Administers]),
        ("of a mount", of_a_mount, &[]),
        ("late", late, &[]),
        ("stranger", &stranger, &[]),
    ];
    let executor = bed.executors[0].as_ref().unwrap().address();
    for (port, calls) in [(bed.scheduler_at(), &AT_SCHEDULER[..]), (executor, &AT_EXECUTOR[..])] {
        for (who, credential, classes) in may {
            let channel = way(port, credential).await;
            for (service, method, class) in calls {
                let through = match &channel {
                    Some(channel) => goes_through(channel, service, method).await,
                    None => false,
                };
                assert_eq!(through, classes.contains(class), "{who}: {service}/{method} at {port}");
            }
        }
    }
}
