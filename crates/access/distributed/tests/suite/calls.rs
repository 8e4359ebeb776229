//! Who may make which call at the ports of scheduler and executors: real ports, real credentials, every call.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::serde::protobuf::ExecuteQueryParams;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::version::insert_version_header;
use bytes::Buf;
use forebay_client::{AdminRequest, Security};
use forebay_testbed::until;
use forebay_transport::{Admission, Credential, Guarded, random_secret, unix_now};
use forebay_types::{Grant, MountOptions, Role, Scope};
use tokio::net::TcpListener;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::bed::Bed;

pub const SCHEDULER: &str = "/ballista.protobuf.SchedulerGrpc";
pub const EXECUTOR: &str = "/ballista.protobuf.ExecutorGrpc";
pub const FLIGHT: &str = "/arrow.flight.protocol.FlightService";

/// What a call takes, as people would say it. Written down apart from what decides.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Takes {
    /// Reading everything.
    Reading,
    /// Being a process of the cluster.
    Serving,
    /// Administering everything.
    Administering,
    /// Nobody has it, whoever he is.
    Nothing,
}

use Takes::{Administering, Nothing, Reading, Serving};

type Call = (&'static str, &'static str, Takes);

const AT_SCHEDULER: [Call; 29] = [
    (SCHEDULER, "PollWork", Serving),
    (SCHEDULER, "RegisterExecutor", Serving),
    (SCHEDULER, "HeartBeatFromExecutor", Serving),
    (SCHEDULER, "UpdateTaskStatus", Serving),
    (SCHEDULER, "ExecutorStopped", Serving),
    (SCHEDULER, "ExecuteQuery", Reading),
    (SCHEDULER, "ExecuteQueryPush", Reading),
    (SCHEDULER, "GetJobStatus", Reading),
    (SCHEDULER, "GetJobMetrics", Reading),
    (SCHEDULER, "CancelJob", Reading),
    (SCHEDULER, "CreateUpdateSession", Reading),
    (SCHEDULER, "RemoveSession", Reading),
    (SCHEDULER, "CleanJobData", Administering),
    (SCHEDULER, "LaunchTask", Nothing),
    (SCHEDULER, "New", Nothing),
    (SCHEDULER, "pollwork", Nothing),
    (SCHEDULER, "PollWork/", Nothing),
    (FLIGHT, "DoAction", Reading),
    (FLIGHT, "ListActions", Reading),
    (FLIGHT, "DoExchange", Nothing),
    (FLIGHT, "DoGet", Nothing),
    (FLIGHT, "DoPut", Nothing),
    (FLIGHT, "GetFlightInfo", Nothing),
    (FLIGHT, "GetSchema", Nothing),
    (FLIGHT, "Handshake", Nothing),
    (FLIGHT, "ListFlights", Nothing),
    (FLIGHT, "PollFlightInfo", Nothing),
    (EXECUTOR, "CancelTasks", Nothing),
    ("/grpc.reflection.v1.ServerReflection", "ServerReflectionInfo", Nothing),
];

const AT_EXECUTOR: [Call; 21] = [
    (EXECUTOR, "LaunchTask", Serving),
    (EXECUTOR, "LaunchMultiTask", Serving),
    (EXECUTOR, "StopExecutor", Serving),
    (EXECUTOR, "CancelTasks", Serving),
    (EXECUTOR, "RemoveJobData", Serving),
    (EXECUTOR, "PollWork", Nothing),
    (EXECUTOR, "New", Nothing),
    (EXECUTOR, "canceltasks", Nothing),
    (FLIGHT, "DoAction", Reading),
    (FLIGHT, "DoExchange", Nothing),
    (FLIGHT, "DoGet", Nothing),
    (FLIGHT, "DoPut", Nothing),
    (FLIGHT, "GetFlightInfo", Nothing),
    (FLIGHT, "GetSchema", Nothing),
    (FLIGHT, "Handshake", Nothing),
    (FLIGHT, "ListActions", Nothing),
    (FLIGHT, "ListFlights", Nothing),
    (FLIGHT, "PollFlightInfo", Nothing),
    (FLIGHT, "New", Nothing),
    (SCHEDULER, "PollWork", Nothing),
    ("/grpc.reflection.v1.ServerReflection", "ServerReflectionInfo", Nothing),
];

/// Whether a credential has what a call takes.
fn has(credential: &str, takes: Takes) -> bool {
    match credential {
        "owner" => takes != Nothing,
        "member" => matches!(takes, Reading | Serving),
        "read" | "write" => takes == Reading,
        "admin" => matches!(takes, Reading | Administering),
        // What reads some of it reads not what a plan can name.
        "read lake" | "write lake" | "admin lake" | "admin other" | "read tmp" | "admin tmp" => false,
        "expired" | "taken away" | "wrong" | "stranger" | "none" => false,
        other => unreachable!("{other}"),
    }
}

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

/// A way to a port for who shows this; none where the port lets nobody in who does.
pub async fn way(port: SocketAddr, shows: &Credential) -> Option<Channel> {
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
    Some(at(near))
}

fn at(port: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{port}")).unwrap().connect_lazy()
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The port carries it out, or tries to.
    Through,
    /// It says that the caller may not.
    Refused,
    /// It has no such service.
    NoService,
    /// It does not speak with the caller.
    Silent,
}

pub async fn call(channel: &Channel, service: &str, method: &str) -> Verdict {
    let mut grpc = Grpc::new(channel.clone());
    if grpc.ready().await.is_err() {
        return Verdict::Silent;
    }
    let path: PathAndQuery = format!("{service}/{method}").parse().unwrap();
    match grpc.server_streaming(Request::new(()), path, Empty).await {
        Ok(_) => Verdict::Through,
        Err(status) if status.code() == Code::PermissionDenied => Verdict::Refused,
        // What breaks the connection is no answer to the call.
        Err(status) if std::error::Error::source(&status).is_some() => Verdict::Silent,
        Err(status) if status.code() == Code::Unimplemented => Verdict::NoService,
        Err(_) => Verdict::Through,
    }
}

/// The services that a port has; it knows no other one.
fn is_served(calls: &[Call], service: &str) -> bool {
    calls.iter().any(|(of, _, takes)| *of == service && *takes != Nothing)
}

/// A cluster, and a credential of each kind.
async fn cluster() -> (Bed, BTreeMap<&'static str, Credential>) {
    let owner = Credential::owner("a secret of this cluster").unwrap();
    let member = Credential::member("a secret of its processes").unwrap();
    let admits = Arc::new(Admission::of([&owner, &member]));
    let security = Security { shows: Some(owner.clone()), admits: Arc::clone(&admits), tls: None, ..Security::default() };
    let bed = Bed::secured(1, MountOptions::default(), true, security).await;
    let only = |mounts: &[&str], temporary| Scope::Only {
        mounts: mounts.iter().map(|mount| mount.parse().unwrap()).collect(),
        temporary,
    };
    let (lake, other, tmp) = (only(&["lake"], false), only(&["other"], false), only(&[], true));
    let mut credentials = BTreeMap::from([("owner", owner), ("member", member)]);
    for (what, role, scope, expires) in [
        ("read", Role::Read, Scope::All, None),
        ("write", Role::Write, Scope::All, None),
        ("admin", Role::Admin, Scope::All, None),
        ("read lake", Role::Read, lake.clone(), None),
        ("write lake", Role::Write, lake.clone(), None),
        ("admin lake", Role::Admin, lake, None),
        ("admin other", Role::Admin, other, None),
        ("read tmp", Role::Read, tmp.clone(), None),
        ("admin tmp", Role::Admin, tmp, None),
        ("expired", Role::Admin, Scope::All, Some(unix_now() + 1)),
        ("taken away", Role::Admin, Scope::All, None),
    ] {
        let (name, grant) = (what.replace(' ', "-"), Grant { role, scope, expires });
        let token = Credential::generate(&name, 1).unwrap();
        bed.client.control(AdminRequest::TokenAdd { name, grant, keys: token.keys() }).await.unwrap();
        until("it is known", || admits.caller(&token).is_ok()).await;
        credentials.insert(what, token);
    }
    // One that names a token and does not know its secret.
    let wrong = Credential::of_token(credentials["admin"].id(), &random_secret().unwrap());
    credentials.insert("wrong", wrong.unwrap());
    credentials.insert("stranger", Credential::owner("a secret of another cluster").unwrap());
    (bed, credentials)
}

/// Every cell of the table that is not what it takes.
async fn differing(port: SocketAddr, calls: &[Call], credential: &str, channel: Option<&Channel>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (service, method, takes) in calls {
        let verdict = if let Some(channel) = channel { call(channel, service, method).await } else { Verdict::Silent };
        let expected = match (has(credential, *takes), is_served(calls, service), channel.is_some() && credential != "none") {
            (true, ..) => Verdict::Through,
            (false, _, false) => Verdict::Silent,
            (false, true, true) => Verdict::Refused,
            (false, false, true) => Verdict::NoService,
        };
        if verdict != expected {
            wrong.push(format!("{credential}: {service}/{method} at {port}: {verdict:?}, not {expected:?}"));
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_credential_makes_the_calls_of_its_right_and_no_other() {
    let (bed, credentials) = cluster().await;
    let ports = [(bed.scheduler_at(), &AT_SCHEDULER[..]), (bed.executors[0].as_ref().unwrap().address(), &AT_EXECUTOR[..])];
    // Both are let in, and hold on to their connections when what they show ends.
    let mut standing = Vec::new();
    for (port, calls) in ports {
        for what in ["taken away", "expired"] {
            let channel = way(port, &credentials[what]).await;
            if let Some(channel) = &channel {
                call(channel, FLIGHT, "DoAction").await;
            }
            standing.push((port, calls, what, channel));
        }
    }
    bed.client.control(AdminRequest::TokenRemove { name: "taken-away".to_string() }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(
        standing.iter().all(|(.., what, channel)| channel.is_some() || *what == "expired"),
        "it comes in until it is taken away"
    );
    let mut wrong = Vec::new();
    for (port, calls, what, channel) in standing {
        wrong.extend(differing(port, calls, what, channel.as_ref()).await);
    }
    for (port, calls) in ports {
        for (what, credential) in &credentials {
            let channel = way(port, credential).await;
            let comes_in = !["expired", "taken away", "wrong", "stranger"].contains(what);
            assert!(channel.is_some() || !comes_in, "{what} has no connection to {port}");
            wrong.extend(differing(port, calls, what, channel.as_ref()).await);
        }
        wrong.extend(differing(port, calls, "none", Some(&at(port))).await);
    }
    assert!(wrong.is_empty(), "{} verdicts: {wrong:#?}", wrong.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_plan_that_our_engine_has_not_planned_is_not_taken() {
    let bed = Bed::start(1).await;
    let mut client = SchedulerGrpcClient::new(way(bed.scheduler_at(), &Security::default().shows.unwrap()).await.unwrap());
    for (query, is_taken) in [
        (Some(Query::PhysicalPlan(vec![1])), true),
        (Some(Query::LogicalPlan(vec![1])), false),
        (Some(Query::SubstraitPlan(vec![1])), false),
        (None, false),
    ] {
        let asked = || {
            let mut asked = Request::new(ExecuteQueryParams { query: query.clone(), ..ExecuteQueryParams::default() });
            insert_version_header(asked.metadata_mut());
            asked
        };
        let (pushed, polled) = (client.execute_query_push(asked()).await, client.execute_query(asked()).await);
        for status in [pushed.err(), polled.err()].into_iter().flatten() {
            let is_refused = status.message().contains("physical plans only");
            assert_eq!(is_refused, !is_taken, "{query:?}: {status}");
        }
        assert!(is_taken || client.execute_query(asked()).await.is_err(), "{query:?}");
    }
    assert!(bed.control().jobs().await.unwrap().is_empty());
}
