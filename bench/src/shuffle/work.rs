//! The queries that shuffles are measured with: a sort, a group-by, a broadcast and TPC-H, and what they read.

use std::path::{Path, PathBuf};

use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::same_answer;
use forebay_types::{Error, Result};

use crate::rig::mounted;

/// Files of what rows are made from, and rows that each of its rows becomes: nothing of any size is read.
const FILES: usize = 16;
const EACH: u64 = 1_000;
/// Columns of a row besides its key, of eight bytes as the key is.
const COLUMNS: usize = 11;
/// Groups of the group-by.
const GROUPS: u64 = 10_000_000;
/// Rows of the table that is broadcast: 100 MB.
const TABLE_ROWS: u64 = 100_000_000 / (8 * (COLUMNS as u64 + 1));

/// Of each query.
pub type Answers = Vec<Vec<RecordBatch>>;

/// A query and what it reads.
pub struct Work {
    /// For people.
    pub what: String,
    /// Bytes that pass between stages, about.
    pub bytes: u64,
    /// Tasks of an executor at once.
    pub slots: usize,
    /// Partitions of plans.
    pub partitions: usize,
    data: Data,
    queries: Vec<String>,
}

enum Data {
    Rows(u64),
    Table,
    Tpch(f64),
}

impl Work {
    /// All rows by their key, checked by their order and sums where they come together.
    pub fn sort(bytes: u64) -> Self {
        let rows = rows(bytes);
        let columns = (0..COLUMNS).map(|ix| format!("c{ix}")).collect::<Vec<_>>().join(", ");
        let sums = (0..COLUMNS).map(|ix| format!("sum(c{ix})")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "select count(*), {sums} from (select k, lag(k) over (order by k) as p, {columns} from ({})) \
             where p is null or p <= k",
            generated()
        );
        let what = format!("sort of {:.1} GB", bytes as f64 * 1e-9);
        Self { what, bytes, slots: 2, partitions: FILES, data: Data::Rows(rows), queries: vec![sql] }
    }

    /// A count and a sum of each of ten million groups.
    pub fn group_by(bytes: u64) -> Self {
        let rows = rows(bytes);
        let sql = format!(
            "select count(*), sum(n), sum(s), max(m) from \
             (select k % {GROUPS} as g, count(*) as n, sum(c0) as s, max(c1) as m from ({}) group by g)",
            generated()
        );
        let what = format!("group-by of {rows} rows, {GROUPS} groups at most");
        Self { what, bytes, slots: 2, partitions: FILES, data: Data::Rows(rows), queries: vec![sql] }
    }

    /// A join with a table that all tasks read whole, a task for each of four executors.
    pub fn broadcast() -> Self {
        let sql = format!(
            "select count(*), sum(t.c0 + t.c1 + t.c2 + t.c3 + t.c4 + t.c5 + t.c6 + t.c7 + t.c8 + t.c9 + t.c10) \
             from '{0}/probe/*.parquet' p join '{0}/table/*.parquet' t on p.id = t.k",
            mounted()
        );
        let (bytes, queries) = (8 * 100_000_000, vec![sql]);
        Self {
            what: "broadcast of 100 MB to 4 executors".to_string(),
            bytes,
            slots: 1,
            partitions: 4,
            data: Data::Table,
            queries,
        }
    }

    /// All queries, one after the other.
    pub fn tpch(scale: f64) -> Self {
        let queries = forebay_tpch::QUERIES.iter().map(ToString::to_string).collect();
        let bytes = (scale * 1e9) as u64;
        Self { what: format!("TPC-H SF{scale}"), bytes, slots: 2, partitions: 8, data: Data::Tpch(scale), queries }
    }

    /// Writes what it reads below a folder; what is to be mounted.
    pub async fn prepare(&self, folder: &Path) -> Result<PathBuf> {
        let at = format!("file://{}", folder.display());
        let engine = Engine::over_object_store(Vec::new(), EngineSettings::default());
        match self.data {
            Data::Tpch(scale) => return Ok(forebay_tpch::prepare(folder, scale, |_, _| {}).await?.folder),
            Data::Rows(rows) => {
                let seeds = rows / EACH;
                for file in 0..FILES as u64 {
                    let (from, to) = (seeds * file / FILES as u64, seeds * (file + 1) / FILES as u64);
                    let sql = format!("copy (select value as a from range({from}, {to})) to '{at}/seeds/{file:02}.parquet'");
                    engine.execute(&sql).await?.collect().await?;
                }
            }
            Data::Table => {
                let columns: Vec<_> = (0..COLUMNS).map(|ix| format!("{} as c{ix}", mixed("value", ix))).collect();
                for file in 0..4 {
                    let (from, to) = (TABLE_ROWS * file / 4, TABLE_ROWS * (file + 1) / 4);
                    let columns = columns.join(", ");
                    let sql =
                        format!("copy (select value as k, {columns} from range({from}, {to})) to '{at}/table/{file}.parquet'");
                    engine.execute(&sql).await?.collect().await?;
                    let (from, to) = (file * 4_000_000, (file + 1) * 4_000_000);
                    let sql = format!(
                        "copy (select value * 7 % {TABLE_ROWS} as id from range({from}, {to})) to '{at}/probe/{file}.parquet'"
                    );
                    engine.execute(&sql).await?.collect().await?;
                }
            }
        }
        Ok(folder.to_path_buf())
    }

    /// Runs its queries.
    pub async fn run(&self, engine: &Engine) -> Result<Answers> {
        let mut answers = Vec::new();
        for sql in &self.queries {
            answers.push(engine.execute(sql).await?.collect().await?);
        }
        Ok(answers)
    }

    /// Whether two runs have answered the same, value by value.
    pub fn same(&self, first: &Answers, found: &Answers) -> Result<()> {
        for (at, (first, found)) in first.iter().zip(found).enumerate() {
            same_answer(at + 1, first, found).map_err(Error::internal)?;
        }
        Ok(())
    }

    /// How many queries it is.
    pub fn queries(&self) -> usize {
        self.queries.len()
    }

    /// Whether what it reads is of any size.
    pub fn is_warmed_up(&self) -> bool {
        !matches!(self.data, Data::Rows(_))
    }

    /// Names its tables.
    pub async fn views(&self, engine: &Engine) -> Result<()> {
        if let Data::Tpch(_) = self.data {
            for table in forebay_tpch::TABLES {
                let view = format!("create view {table} as select * from '{}/{table}/*.parquet'", mounted());
                engine.execute(&view).await?.collect().await?;
            }
        }
        Ok(())
    }
}

fn rows(bytes: u64) -> u64 {
    bytes / (8 * (COLUMNS as u64 + 1)) / EACH * EACH
}

/// Rows that are made where they are read: a key and columns without a pattern.
fn generated() -> String {
    let columns: Vec<_> = (0..COLUMNS).map(|ix| format!("{} as c{ix}", mixed("i", ix))).collect();
    format!(
        "select i * 2654435761 % 4294967291 as k, {} from \
         (select a * {EACH} + u as i from (select a, unnest(range(0, {EACH})) as u from '{}/seeds/*.parquet'))",
        columns.join(", "),
        mounted()
    )
}

fn mixed(of: &str, ix: usize) -> String {
    const PRIMES: [u64; COLUMNS] = [40_503, 65_537, 104_729, 15_485, 32_452, 49_979, 67_867, 86_028, 10_459, 12_289, 99_991];
    format!("{of} * {} % 4294967279", PRIMES[ix] * 2_654_435)
}
