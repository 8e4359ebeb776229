//! Temporary data in statements of a cluster: executors read it, who asks writes it, and his right decides.

use forebay_client::{AdminRequest, Client, ClientSettings, Security};
use forebay_sql::{Engine, EngineSettings};
use forebay_testbed::until;
use forebay_transport::{Admission, Credential};
use forebay_types::{ErrorKind, Grant, Role, Scope};

use super::written::{guarded, of_role};
use crate::bed::{Bed, rows};

/// Rows that two workers' executors share.
const ROWS: &str = "select l_orderkey, l_linenumber, l_shipmode, l_comment from lineitem";
const SUMS: &str = "select count(*), sum(l_orderkey), sum(l_linenumber), min(l_shipmode), max(length(l_comment)) from";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn executors_read_temporary_data_and_who_asks_writes_it() {
    let bed = Bed::start(2).await;
    let (here, cluster) = bed.both_with_tpch(0.01).await;
    let sums = rows(&here, &format!("{SUMS} lineitem")).await;
    for to in ["one.parquet", "one.csv", "one.albis", "folder/"] {
        let jobs = bed.control().jobs().await.unwrap().len();
        let copy = format!("copy ({ROWS}) to '/tmp/out/{to}'");
        let why = "what it writes is temporary data, which this process alone writes";
        let told = rows(&cluster, &format!("explain {copy}")).await;
        assert!(told.iter().any(|line| line.contains(&format!("in this process: {why}"))), "{to}: {told:?}");
        let mut query = cluster.execute(&copy).await.unwrap();
        assert!(query.notice().is_some_and(|notice| notice.contains(why)), "{to}: {:?}", query.notice());
        query.collect().await.unwrap();
        assert_eq!(bed.control().jobs().await.unwrap().len(), jobs, "{to} is written here");
        assert_eq!(rows(&cluster, &format!("{SUMS} '/tmp/out/{to}' where l_orderkey > 0")).await, sums, "{to}");
        assert_eq!(bed.control().jobs().await.unwrap().len(), jobs + 1, "{to} is read on the cluster");
    }
    let joined =
        "select count(*), sum(o.o_totalprice) from '/tmp/out/one.parquet' l join orders o on l.l_orderkey = o.o_orderkey";
    assert_eq!(rows(&cluster, joined).await, rows(&here, &joined.replace("'/tmp/out/one.parquet'", "lineitem")).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn executors_keep_nothing_of_temporary_data_that_was_replaced() {
    let bed = Bed::start(2).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    for name in ["x.parquet", "x.csv", "x.albis"] {
        for at in 1..4 {
            let copy = format!("copy (select {at} as a, value as b from range(0, 30000) as t(value)) to '/tmp/r/{name}'");
            assert_eq!(rows(&here, &copy).await, [" 30000 "]);
            let read = format!("select min(a), max(a), sum(a), sum(b) from '/tmp/r/{name}' where b >= 0");
            assert_eq!(rows(&cluster, &read).await, [format!(" {at} {at} {} 449985000 ", at * 30000)], "{name}");
        }
    }
}

/// What a statement fails with, wherever it does.
async fn refused(engine: &Engine, sql: &str) -> forebay_types::Error {
    match engine.execute(sql).await {
        Ok(mut query) => query.collect().await.map(|rows| panic!("{sql} answered {rows:?}")).unwrap_err(),
        Err(error) => error,
    }
}

/// An engine of somebody who may do something with `lake`, and nothing with temporary data.
async fn of_lake_alone(bed: &Bed, admits: &Admission, role: Role) -> Engine {
    let token = Credential::generate("lake-alone", 1).unwrap();
    let scope = Scope::Only { mounts: vec!["lake".parse().unwrap()], temporary: false };
    let grant = Grant { scope, ..Grant::everywhere(role) };
    bed.client.control(AdminRequest::TokenAdd { name: "lake-alone".into(), grant, keys: token.keys() }).await.unwrap();
    until("it is known", || admits.caller(&token).is_ok()).await;
    let settings = ClientSettings { security: Security::holder(token), ..bed.test.node.client_settings() };
    Engine::over_client(Client::connect(settings).await.unwrap(), EngineSettings::default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rights_on_temporary_data_hold_for_statements() {
    let (bed, admits) = guarded().await;
    bed.put("a.csv", b"x\n1\n2\n3\n");
    let (reader, _) = of_role(&bed, &admits, Role::Read).await;
    let (writer, _) = of_role(&bed, &admits, Role::Write).await;
    let stranger = of_lake_alone(&bed, &admits, Role::Write).await;
    let (copy, read) = ("copy (select x from '/lake/a.csv') to '/tmp/t/x.csv'", "select sum(x) from '/tmp/t/x.csv'");
    let table = "create external table t (x bigint) stored as csv location '/tmp/t/'";
    for engine in [&reader, &stranger] {
        let error = refused(engine, copy).await;
        assert!(error.message().contains("may not write temporary data"), "{error}");
    }
    assert_eq!(refused(&writer, read).await.kind(), ErrorKind::NotFound, "nothing was written");
    assert_eq!(rows(&writer, copy).await, [" 3 "]);
    rows(&writer, table).await;
    assert_eq!(rows(&reader, read).await, [" 6 "]);
    assert_eq!(rows(&reader, "select sum(x) from t").await, [" 6 "]);
    let added = refused(&reader, "insert into t values (4)").await;
    assert!(added.message().contains("may not write temporary data"), "{added}");
    for sql in [read, "select * from '/tmp/t/'", "select * from '/tmp/*/*.csv'"] {
        let error = refused(&stranger, sql).await;
        assert!(error.message().contains("may not read temporary data"), "{sql}: {error}");
        assert_eq!(error.kind(), ErrorKind::Denied, "{sql}: {error}");
    }
    assert_eq!(rows(&stranger, "select sum(x) from '/lake/a.csv'").await, [" 6 "]);
    assert_eq!(rows(&writer, read).await, [" 6 "]);
}
