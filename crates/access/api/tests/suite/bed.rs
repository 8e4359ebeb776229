//! A small cluster with a dataset, and its HTTP server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_api::{Cluster, Http as Served, HttpSettings, Readers, Readiness, Token};
use forebay_client::{AdminRequest, Client};
use forebay_coordinator::Coordinator;
use forebay_node::Node;
use forebay_protocol::{ClusterStatus, ControlReply, Filled, PlacementStatus};
use forebay_shard::{Key, KeyMap, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store};
use forebay_shards::{Shards, create};
use forebay_testbed::add_mount;
use forebay_transport::{Address, Admission, Credential, Security, random_secret, unix_now};
use forebay_types::{Grant, MountOptions, Role, Scope};
use forebay_worker::WorkerSettings;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;
use tempfile::TempDir;

pub const DATASET: &str = "/lake/orders.shards";
/// The objects that it follows; there are none at first.
pub const FOLLOWED: &str = "/lake/in/";
pub const RECORDS: i64 = 2000;
/// An object beside it, and its bytes.
pub const TABLE: &str = "/lake/table.csv";
pub const TABLE_BYTES: usize = 80_000;
/// What is let in, by what it is for.
pub const TOKENS: [&str; 9] =
    ["read", "write", "admin", "read lake", "read other", "write lake", "admin lake", "read tmp", "expired"];

type Http = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;

/// The cluster of this process's coordinator.
struct Known(Arc<Coordinator>);

impl Cluster for Known {
    forebay_types::handed_on! {
        [0]
        fn status(&self) -> ClusterStatus;
        fn placement(&self, limit: usize) -> PlacementStatus;
        fn filled(&self, limit: usize) -> Filled;
    }

    fn tokens(&self) -> Vec<Token> {
        self.0.tokens().iter().map(|token| Token::of(token, |secs| format!("at {secs}"))).collect()
    }
}

pub struct Bed {
    pub client: Client,
    pub address: SocketAddr,
    pub owner: String,
    member: String,
    _served: Served,
    tokens: BTreeMap<&'static str, String>,
    http: Http,
    node: Node,
    folder: TempDir,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn lines(&self) -> Vec<Json> {
        assert_eq!((self.status, self.header("content-type")), (200, "application/x-ndjson"), "{self:?}");
        assert!(self.body.is_empty() || self.body.ends_with(b"\n"));
        serde_json::Deserializer::from_slice(&self.body).into_iter().map(Result::unwrap).collect()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The status and the kind of what is wrong.
    pub fn wrong(&self) -> (u16, String) {
        let json = self.json();
        assert!(json["message"].as_str().is_some_and(|message| !message.is_empty()), "{json}");
        (self.status, json["error"].as_str().unwrap().to_string())
    }
}

pub fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let encoded = parameters.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    format!("{path}?{}", encoded.collect::<Vec<_>>().join("&"))
}

impl Bed {
    /// With a dataset in the mount `lake`.
    pub async fn start(workers: usize) -> Self {
        Self::with(workers, crate::doubles::open).await
    }

    /// The same without a scheduler and without SQL.
    pub async fn closed(workers: usize) -> Self {
        Self::with(workers, |_, _, _| {}).await
    }

    async fn with(workers: usize, open: impl FnOnce(&Served, Address, &Path)) -> Self {
        let folder = TempDir::new().unwrap();
        let (owner, member) = (random_secret().unwrap(), random_secret().unwrap());
        let keys = [Credential::owner(&owner).unwrap(), Credential::member(&member).unwrap()];
        let admits = Arc::new(Admission::of([&keys[0], &keys[1]]));
        let security = Security { shows: Some(keys[0].clone()), admits, tls: None, ..Security::default() };
        let mut node = Node::lead_in(folder.path(), security.clone()).await.unwrap();
        let client = node.client().await.unwrap();
        for name in ["lake", "other"] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            add_mount(&client, name, &format!("file://{}", path.display()), MountOptions::default()).await;
        }
        std::fs::write(folder.path().join("lake/table.csv"), "id,name\n".repeat(TABLE_BYTES / 8)).unwrap();
        for place in 0..workers {
            let worker = WorkerSettings {
                // What a worker admits it hears of the coordinator, as in a process of its own.
                security: Security::owner(&owner).unwrap(),
                unix_socket: None,
                ..node.worker_in(&folder.path().join(format!("worker{place}")), 64 << 20)
            };
            node.start_worker(worker).await.unwrap();
        }
        client.refresh_view().await.unwrap();
        let known = Arc::new(Known(Arc::clone(node.coordinator.as_ref().unwrap())));
        let served = serve(&security, false).await;
        served.show_cluster(known, node.client_settings());
        open(&served, node.coordinator_at().clone(), folder.path());
        let address = served.address();
        let http: Http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        let tokens = BTreeMap::new();
        let mut bed = Self { client, address, owner, member, _served: served, tokens, http, node, folder };
        bed.add_tokens().await;
        bed.create().await;
        bed
    }

    async fn add_tokens(&mut self) {
        for what in TOKENS {
            let role = match what {
                what if what.starts_with("admin") => Role::Admin,
                what if what.starts_with("write") => Role::Write,
                _ => Role::Read,
            };
            let scope = match what.split_once(' ') {
                Some((_, "tmp")) => Scope::Only { mounts: vec![], temporary: true },
                Some((_, mount)) => Scope::Only { mounts: vec![mount.parse().unwrap()], temporary: false },
                None => Scope::All,
            };
            let expires = (what == "expired").then(|| unix_now() - 1);
            let secret = random_secret().unwrap();
            let keys = Credential::owner(&secret).unwrap().keys();
            let add = AdminRequest::TokenAdd { name: what.replace(' ', "-"), grant: Grant { role, scope, expires }, keys };
            let ControlReply::Tokens(added) = self.client.control(add).await.unwrap() else { panic!("a token") };
            self.tokens.insert(what, format!("fb.{}.{secret}", added[0].id));
        }
    }

    async fn create(&self) {
        let path = DATASET.parse().unwrap();
        let mut creating = create(&self.client, &path, columns(), vec![0.9, 0.5], false).await.unwrap();
        creating.follow(vec![FOLLOWED.to_string()], Duration::from_secs(3600)).unwrap();
        for shard in 0..2 {
            let part = self.part(shard);
            let mut building = Store::build(&part, columns(), 0.01).unwrap();
            for (key, values) in (0..RECORDS).map(record).filter(|(key, _)| KeyMap::Hash(2).shard_of(key) == shard) {
                building.push(key, values).unwrap();
            }
            building.finish().unwrap();
            creating.push(&part, |_| {}).await.unwrap();
        }
        creating.finish().await.unwrap();
    }

    /// The folder of a shard's files.
    pub fn part(&self, shard: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("part{shard}"))
    }

    /// The dataset as a program opens it, to compare with.
    pub async fn shards(&self) -> Shards {
        Shards::open(&self.client, &DATASET.parse().unwrap()).await.unwrap()
    }

    /// The text of a token; of the owner's secret for "owner", and of the cluster's for "member".
    pub fn token(&self, what: &str) -> &str {
        match what {
            "owner" => &self.owner,
            "member" => &self.member,
            token => &self.tokens[token],
        }
    }

    pub async fn stop_workers(&mut self) {
        for worker in self.node.workers.drain(..) {
            worker.shutdown().await;
        }
        self.client.refresh_view().await.unwrap();
    }

    pub async fn ask_as(&self, token: Option<&str>, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let shown = token.map(|token| format!("Bearer {token}"));
        self.ask_with(shown.as_deref(), method, path, body).await
    }

    /// Asks with what stands in the header of who asks.
    pub async fn ask_with(&self, shown: Option<&str>, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let headers: Vec<(&str, &str)> = shown.map(|shown| ("authorization", shown)).into_iter().collect();
        self.ask_saying(&headers, method, path, body).await
    }

    pub async fn ask_saying(&self, headers: &[(&str, &str)], method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let (answer, is_whole) = self.ask_as_far(headers, method, path, body).await;
        assert!(is_whole, "it breaks off: {answer:?}");
        answer
    }

    /// The same of an answer that may break off: as far as it came, and whether that is all of it.
    pub async fn ask_as_far(&self, headers: &[(&str, &str)], method: &str, path: &str, body: impl Into<Bytes>) -> (Answer, bool) {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.http.request(request.body(Full::new(body.into())).unwrap());
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await.expect("an answer").unwrap();
        let (head, mut body) = answer.into_parts();
        let (mut came, mut is_whole) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => came.extend_from_slice(frame.data_ref().expect("there are no trailers")),
                Err(_) => {
                    is_whole = false;
                    break;
                }
            }
        }
        (Answer { status: head.status.as_u16(), headers: head.headers, body: came.into() }, is_whole)
    }

    /// The data of the first event of a stream.
    pub async fn first_event(&self, path: &str) -> Json {
        let request = Request::get(format!("http://{}{path}", self.address));
        let request = request.header("authorization", format!("Bearer {}", self.token("read")));
        let mut body = self.http.request(request.body(Full::default()).unwrap()).await.unwrap().into_body();
        let mut text = String::new();
        while !text.contains("\n\n") {
            let frame = tokio::time::timeout(Duration::from_secs(60), body.frame()).await.expect("an event").unwrap().unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(data).unwrap()
    }

    /// Asks as one who may read the mount of the dataset, and no other.
    pub async fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        self.ask_as(Some(self.token("read lake")), "GET", &query(path, parameters), "").await
    }

    /// The same about the dataset.
    pub async fn of_dataset(&self, what: &str, parameters: &[(&str, &str)]) -> Answer {
        self.get(&format!("/api/v1/shards/{what}"), &[&[("dataset", DATASET)], parameters].concat()).await
    }

    pub async fn sql(&self, credential: &str, parameters: &str, sql: &str) -> Answer {
        let path = format!("/api/v1/sql?{parameters}");
        self.ask_as(Some(self.token(credential)), "POST", &path, sql.to_string()).await
    }

    /// The same for all rows, as lines.
    pub async fn sql_rows(&self, credential: &str, parameters: &str, sql: &str) -> Answer {
        let path = format!("/api/v1/sql/rows?{parameters}");
        self.ask_as(Some(self.token(credential)), "POST", &path, sql.to_string()).await
    }

    /// Changes the dataset, as one who may write in its mount and in no other.
    pub async fn change(&self, method: &str, what: &str, parameters: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let path = query(&format!("/api/v1/shards/{what}"), &[&[("dataset", DATASET)], parameters].concat());
        self.ask_as(Some(self.token("write lake")), method, &path, body).await
    }

    /// Orders something of the dataset's replicas, as one who may administer its mount and no other.
    pub async fn order(&self, method: &str, what: &str, parameters: &[(&str, &str)]) -> Answer {
        let path = query(&format!("/api/v1/shards/{what}"), &[&[("dataset", DATASET)], parameters].concat());
        self.ask_as(Some(self.token("admin lake")), method, &path, "").await
    }

    pub async fn batch(&self, parameters: &[(&str, &str)], questions: impl Into<Bytes>) -> Answer {
        let path = query("/api/v1/shards/batch", &[&[("dataset", DATASET)], parameters].concat());
        self.ask_as(Some(self.token("read lake")), "POST", &path, questions).await
    }
}

/// A port of a coordinator that has started.
pub async fn serve(security: &Security, metrics_are_open: bool) -> Served {
    let (readers, readiness) = (Readers::new(vec![Arc::clone(&security.admits)]), Readiness::of(["coordinator"]));
    readiness.started("coordinator", || Ok(()));
    let address = "127.0.0.1:0".into();
    let settings = HttpSettings { address, tls: None, readers, metrics_are_open, readiness, connections_max: 1000 };
    Served::start(settings).await.unwrap()
}

fn columns() -> Columns {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let all = vec![column("id", ColumnKind::Int), column("name", ColumnKind::Text), column("note", ColumnKind::Text)];
    Columns::new(all, "id").unwrap()
}

/// Keys on both sides of zero; names that several share.
fn record(number: i64) -> (Key, Vec<Value>) {
    let (key, note) = (number - RECORDS / 4, format!("line {number} of {}", number * 7919 % 1000));
    (Key::U64(key as u64), vec![Value::Text(format!("clerk{:03}", number * 31 % 97)), Value::Text(note)])
}
