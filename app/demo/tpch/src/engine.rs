//! TPC-H's tables as an engine sees them, wherever their files are, so that one query runs over any of these places.

use datafusion::arrow::array::RecordBatch;
use forebay_sql::Engine;
use forebay_types::Result;

use crate::queries::TABLES;

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
