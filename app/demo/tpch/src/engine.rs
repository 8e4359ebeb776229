//! TPC-H's queries with the specification's validation parameters, and its tables as an engine sees them, wherever their files are, so that
//! one query runs over any of these places.

use datafusion::arrow::array::RecordBatch;
use forebay_sql::Engine;
use forebay_types::Result;

/// The text of a file a query, by what stands before and behind its number.
macro_rules! of_each_query {
    ($before:literal, $after:literal) => {
        of_each_query!($before, $after, "01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11" "12" "13" "14" "15" "16" "17"
            "18" "19" "20" "21" "22")
    };
    ($before:literal, $after:literal, $($number:literal)*) => {
        [$(include_str!(concat!($before, $number, $after))),*]
    };
}
pub(crate) use of_each_query;

/// The names of the tables.
pub const TABLES: [&str; 8] = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// The 22 queries, over tables of the specification's names; query 1 is the first.
pub const QUERIES: [&str; 22] = of_each_query!("../queries/q", ".sql");

/// An engine with the eight tables, over the place that their files are in.
pub struct Tpch(Engine);

impl Tpch {
    /// Views of the tables' files below `place` (`/lake`, `s3://bucket`, `file:///folder`), a folder a table.
    pub async fn new(engine: Engine, place: &str) -> Result<Self> {
        for table in TABLES {
            let statement = format!("create view {table} as select * from '{place}/{table}/*.parquet'");
            engine.execute(&statement).await?.collect().await?;
        }
        Ok(Self(engine))
    }

    /// The same tables as arrays in memory: nothing is read or decoded any more.
    pub async fn in_memory(engine: Engine, place: &str) -> Result<Self> {
        for table in TABLES {
            let statement = format!("create table {table} as select * from '{place}/{table}/*.parquet'");
            engine.execute(&statement).await?.collect().await?;
        }
        Ok(Self(engine))
    }

    /// The engine that has the tables.
    pub fn engine(&self) -> &Engine {
        &self.0
    }

    /// Runs a query to its last row.
    pub async fn run(&self, query: &str) -> Result<Vec<RecordBatch>> {
        self.0.execute(query).await?.collect().await
    }
}
