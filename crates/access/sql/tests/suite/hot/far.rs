//! Rows of decoded columns from a worker of another host: the same answers with fewer bytes sent, or the file's own bytes.

use std::time::Duration;

use forebay_client::{Client, ControlReply, ControlRequest, FarRows, RowsQuestion};
use forebay_sql::{Engine, EngineSettings};
use forebay_testbed::{TestCluster, bytes};
use forebay_types::{Cell, CellSource, HotForm, OperationId};

use crate::cluster::Cluster;
use crate::hot::{counted, heat_until};
use crate::support::{Lake, rows, settings};

const SELECTED: &str = "selected_afar=";

/// An engine of another host that has rows selected, and one that reads the files' bytes, each with its client.
struct Two {
    far: Engine,
    far_client: Client,
    raw: Engine,
    raw_client: Client,
}

impl Two {
    async fn of(cluster: &Cluster) -> Self {
        let (far_client, raw_client) = (cluster.far_client().await, cluster.far_client().await);
        let raw = EngineSettings { rows_from_afar: false, ..settings() };
        let (far, raw) = (Engine::over_client(far_client.clone(), settings()), Engine::over_client(raw_client.clone(), raw));
        Self { far, far_client, raw, raw_client }
    }

    async fn answer_the_same(&self, sql: &str) {
        assert_eq!(rows(&self.far, sql).await, rows(&self.raw, sql).await, "{sql}");
    }

    /// Bytes that a worker sends to each for a statement.
    async fn bytes_of(&self, sql: &str) -> (u64, u64) {
        let mut bytes = Vec::new();
        for (engine, client) in [(&self.far, &self.far_client), (&self.raw, &self.raw_client)] {
            let before = client.counters().bytes_socket;
            rows(engine, sql).await;
            bytes.push(client.counters().bytes_socket - before);
        }
        (bytes[0], bytes[1])
    }
}

/// Copies what a statement gives to a file of the cluster. Its row groups are small, so that reading them says nothing of the link: bytes alone
/// decide.
async fn put(cluster: &Cluster, name: &str, select: &str) {
    let lake = Lake::new();
    lake.rows("set datafusion.execution.parquet.max_row_group_size = 5000").await;
    lake.rows(&format!("copy ({select}) to '/lake/{name}'")).await;
    cluster.put(name, &lake.store_bytes(name).await);
}

/// Ten row groups, of which one row in a hundred has a word.
async fn words(cluster: &Cluster, from: i64) {
    let to = from + 49_999;
    let select = "value as id, concat('word ', value % 100) as word, md5(cast(value as varchar)) as hash, \
                  nullif(value % 7, 0) as rest";
    put(cluster, "w.parquet", &format!("select {select} from generate_series({from}, {to}) as t(value)")).await;
}

const FEW: &str = "select id, hash from '/lake/w.parquet' where word = 'word 7' order by id";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scan_of_few_rows_answers_as_a_plain_one_and_has_fewer_bytes_sent() {
    let cluster = Cluster::hot().await;
    words(&cluster, 1).await;
    let two = Two::of(&cluster).await;
    two.answer_the_same(FEW).await;
    heat_until(&two.far, FEW, SELECTED, 10).await;
    two.answer_the_same(FEW).await;
    let (far, raw) = two.bytes_of(FEW).await;
    assert!(far * 5 < raw, "{far} of {raw} bytes");
    for count in ["selected_bytes_sent=", "raw_bytes_spared="] {
        assert!(counted(&two.far, FEW, count).await > 0, "{count}");
    }
    assert_eq!(counted(&two.raw, FEW, SELECTED).await, 0, "it can be turned off");

    let few = "(select id + 7 as id from '/lake/w.parquet' where word = 'word 7')";
    for sql in [
        "select count(*), sum(id) from '/lake/w.parquet' where word = 'word 7' or rest is null and id < 100".to_string(),
        "select * from '/lake/w.parquet' where word in ('word 7', 'word 8', 'none') and rest <> 3 order by id".to_string(),
        "select id, word from '/lake/w.parquet' order by hash limit 5".to_string(),
        "select count(*), min(length(hash)) from (select hash from '/lake/w.parquet' limit 7)".to_string(),
        format!("select count(*), min(w.hash) from '/lake/w.parquet' w join {few} few on w.id = few.id"),
    ] {
        for _ in 0..3 {
            two.answer_the_same(&sql).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_scan_of_all_rows_reads_the_files_bytes() {
    let cluster = Cluster::hot().await;
    words(&cluster, 1).await;
    let two = Two::of(&cluster).await;
    heat_until(&two.far, FEW, SELECTED, 10).await;
    // Each row of it is longer decoded than in the file.
    let all = "select count(*), max(hash), max(word) from '/lake/w.parquet' where id > 0 and length(hash) = 32";
    for _ in 0..3 {
        two.answer_the_same(all).await;
    }
    let (far, raw) = two.bytes_of(all).await;
    assert!(far as f64 <= raw as f64 * 1.05, "{far} of {raw} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_are_of_the_version_that_a_query_has_opened() {
    let cluster = Cluster::hot().await;
    let two = Two::of(&cluster).await;
    let sql = "select min(id), count(hash) from '/lake/w.parquet' where word = 'word 7'";
    for from in [0, 1_000_000, 2_000_000] {
        words(&cluster, from).await;
        let right = format!("{} 500", from + 7);
        assert_eq!(rows(&two.far, sql).await, right);
        heat_until(&two.far, sql, SELECTED, 10).await;
        assert_eq!(rows(&two.far, sql).await, right);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn values_of_all_types_are_compared_as_the_engine_does() {
    let cluster = Cluster::hot().await;
    let select = "value as id, nullif(value % 5, 0) as rest, cast(value % 50 as decimal(9, 2)) as price, \
                  cast(value % 40 as double) - 20.0 as weight, value % 2 = 0 as even, \
                  arrow_cast(value * 1000000, 'Timestamp(Microsecond, Some(\"+02:00\"))') as at, \
                  arrow_cast(value % 60, 'Date32') as day, concat('a word ', value % 30) as word, \
                  arrow_cast(concat('kind ', value % 3), 'Dictionary(Int32, Utf8)') as kind, \
                  named_struct('a', value) as pair, md5(cast(value as varchar)) as hash";
    put(&cluster, "v.parquet", &format!("select {select} from generate_series(1, 30000) as t(value)")).await;
    let two = Two::of(&cluster).await;
    heat_until(&two.far, "select hash from '/lake/v.parquet' where word = 'a word 7'", SELECTED, 6).await;
    for (columns, condition) in [
        ("id, hash", "price = 7.00 and weight > 0"),
        ("id, hash", "price <> 7.00 and day = arrow_cast(7, 'Date32')"),
        ("id, hash", "weight = 0 and even"),
        ("id, hash", "weight < -19.5 or weight > 18.5 and not even"),
        ("id, at", "at >= arrow_cast(29990000000, 'Timestamp(Microsecond, Some(\"+02:00\"))')"),
        ("id, hash", "rest is null and word in ('a word 5', 'a word 10')"),
        ("id, hash", "rest is not null and word not in ('a word 5', 'a word 10') and price = 3.00"),
        ("id, kind, hash", "kind = 'kind 1' and word = 'a word 7'"),
        ("id, pair, hash", "word = 'a word 7'"),
        ("id, hash", "pair['a'] = 77 and word = 'a word 17'"),
        ("count(*), max(hash)", "even is null"),
        ("id, hash", "word >= 'a word 9' and rest = 1 and id % 1000 = 1"),
    ] {
        let order = if columns.starts_with("count") { "" } else { "order by id" };
        let sql = format!("select {columns} from '/lake/v.parquet' where {condition} {order}");
        for _ in 0..2 {
            two.answer_the_same(&sql).await;
            tokio::time::sleep(crate::hot::QUIET).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_column_of_text_files_is_sent_instead_of_their_lines() {
    let cluster = Cluster::hot().await;
    let select = "value as id, md5(cast(value as varchar)) as one, md5(cast(value + 1 as varchar)) as other";
    put(&cluster, "t.csv", &format!("select {select} from generate_series(1, 3000) as t(value)")).await;
    let two = Two::of(&cluster).await;
    let sum = "select sum(id), count(*) from '/lake/t.csv'";
    heat_until(&two.far, sum, SELECTED, 1).await;
    two.answer_the_same(sum).await;
    let (far, raw) = two.bytes_of(sum).await;
    // Both read lines to find what columns there are.
    assert!(far * 3 < raw * 2, "{far} of {raw} bytes");
    two.answer_the_same("select * from '/lake/t.csv' order by id desc limit 3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_is_gone_is_no_failed_query() {
    let mut cluster = Cluster::hot().await;
    words(&cluster, 1).await;
    let two = Two::of(&cluster).await;
    heat_until(&two.far, FEW, SELECTED, 10).await;
    let answer = rows(&two.far, FEW).await;
    cluster.kill_worker();
    for _ in 0..2 {
        assert_eq!(rows(&two.far, FEW).await, answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_are_asked_for_only_where_they_are_there_before_the_files_bytes() {
    let cluster = Cluster::hot().await;
    words(&cluster, 1).await;
    cluster.put("large", &bytes(7, 2 << 20));
    let two = Two::of(&cluster).await;
    heat_until(&two.far, FEW, SELECTED, 10).await;
    let fresh = cluster.far_client().await;
    for client in [&two.far_client, &fresh] {
        let large = client.open(&"/lake/large".parse().unwrap()).await.unwrap().version;
        for operation in 0..8 {
            // So that the link is known.
            client.read(OperationId(operation), &large, 0..large.size).await.unwrap();
        }
    }
    let source = CellSource::parquet(fresh.open(&"/lake/w.parquet".parse().unwrap()).await.unwrap().version);
    let raw_bytes = 1u64 << 20;
    let ask = async |client: &Client, columns: &[u32], expected_bytes: u64| {
        let question = RowsQuestion {
            row_group: 0,
            columns: columns.to_vec(),
            tests: Vec::new(),
            limit: Some(3),
            bytes_max: raw_bytes,
            expected_bytes,
            raw_bytes,
        };
        client.select_rows(OperationId(100), &source, question).await
    };
    let is_given = |rows: FarRows| matches!(rows, FarRows::Rows { rows: 3, .. });
    let is_later = |rows: FarRows| matches!(rows, FarRows::Later);
    // More than the file's bytes take, if that is known.
    let far_more = 1 << 40;
    let of_query: &[u32] = &[0, 1, 2];
    assert!(is_later(ask(&two.far_client, of_query, far_more).await), "the engine has told what they took");
    let columns: &[u32] = &[0, 1];
    assert!(is_given(ask(&fresh, columns, far_more).await), "nobody knows what they take");
    fresh.rows_decoded(&source, columns, 1 << 30, Duration::from_nanos(1));
    assert!(is_later(ask(&fresh, columns, raw_bytes).await), "they are there at once");
    for _ in 0..20 {
        fresh.rows_decoded(&source, columns, raw_bytes, Duration::from_secs(1));
    }
    assert!(is_given(ask(&fresh, columns, raw_bytes).await), "they take a second");
    let unread: &[u32] = &[1, 2];
    for _ in 0..16 {
        fresh.rows_opened(&source, unread, raw_bytes, Duration::from_millis(1));
    }
    assert!(is_later(ask(&fresh, unread, raw_bytes).await), "some are to be read, so that it is known what they take");
    assert!(is_given(ask(&fresh, unread, raw_bytes).await), "and nobody has read them to their end");
}

/// Who holds what is asked of the rows of a file's first row group, and to whom readers of it are sent.
async fn holders(client: &Client) -> (usize, usize) {
    let ControlReply::Placement(status) = client.control(ControlRequest::Placement { limit: 1000 }).await.unwrap() else {
        panic!("no placement");
    };
    let rows = status.segments.iter().find(|segment| Cell::of_index(segment.index) == Some(Cell::rows(0)));
    rows.map_or((0, 0), |rows| (rows.held.iter().filter(|(_, bytes)| *bytes > 0).count(), rows.routing.len()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_many_ask_for_come_from_two_workers() {
    let patient = Duration::from_secs(60);
    let test = TestCluster::start_quick(2, patient, |options| options.hot_form = HotForm::Table).await;
    let lake = Lake::new();
    let select = "value as id, concat('word ', value % 100) as word, md5(cast(value as varchar)) as hash";
    lake.rows(&format!("copy (select {select} from generate_series(1, 50000) as t(value)) to '/lake/w.parquet'")).await;
    test.store("w.parquet", &lake.store_bytes("w.parquet").await);
    let client = test.client(|settings| settings.in_place = false).await;
    let far = Engine::over_client(client.clone(), settings());
    let right = rows(&far, FEW).await;
    assert_eq!(right.lines().count(), 500);
    let began = std::time::Instant::now();
    while holders(&client).await != (2, 2) {
        assert!(began.elapsed() < Duration::from_secs(60), "one worker has it: {:?}", holders(&client).await);
        assert_eq!(rows(&far, FEW).await, right);
    }
    // Each of them has the columns, so that both give rows.
    let least = || test.node.workers.iter().map(|worker| worker.report().form_bytes).min().unwrap();
    let bytes = least();
    assert!(bytes > 1_000_000, "both have the columns decoded: {bytes} bytes");
    client.refresh_view().await.unwrap();
    // Some windows: what a plan has of one column alone takes it from none of both.
    for _ in 0..20 {
        assert_eq!(rows(&far, FEW).await, right);
        let (before, now, after) = (holders(&client).await, least(), holders(&client).await);
        assert!(now >= bytes || before != (2, 2) || after != (2, 2), "{now} bytes of {bytes}");
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}
