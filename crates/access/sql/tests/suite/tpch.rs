//! TPC-H over the store in memory: all of its plans tell within a tenth what they then read.

use std::time::Duration;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use forebay_sql::Engine;
use forebay_tpch::{QUERIES, TABLES};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator,
    SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use crate::support::{Lake, parquet, rows};

/// The tables at a scale factor, as Parquet files.
pub fn tables(scale: f64) -> Vec<(&'static str, Bytes)> {
    let of = |name: &str| -> Vec<RecordBatch> {
        match name {
            "customer" => CustomerArrow::new(CustomerGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            "lineitem" => LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            "nation" => NationArrow::new(NationGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            "orders" => OrderArrow::new(OrderGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            "part" => PartArrow::new(PartGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            "partsupp" => PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            "region" => RegionArrow::new(RegionGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
            _ => SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)).map(Result::unwrap).collect(),
        }
    };
    TABLES.iter().map(|name| (*name, parquet(&of(name), 10_000))).collect()
}

/// Makes the tables views over `/lake/tpch/NAME.parquet`.
pub async fn views(engine: &Engine) {
    for name in TABLES {
        rows(engine, &format!("create view {name} as select * from '/lake/tpch/{name}.parquet'")).await;
    }
}

/// What all queries answer.
pub async fn answers(engine: &Engine) -> Vec<String> {
    let mut answers = Vec::new();
    for sql in QUERIES {
        answers.push(rows(engine, sql).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_tpch_tell_what_is_read() {
    let lake = Lake::new();
    for (name, bytes) in tables(0.01) {
        lake.put(&format!("tpch/{name}.parquet"), bytes).await;
    }
    views(&lake.engine).await;
    let counts: Vec<usize> = answers(&lake.engine).await.iter().map(|answer| answer.lines().count()).collect();
    assert_eq!((counts[0], counts[5], counts[13], counts[21]), (4, 1, 1, 7), "{counts:?}");

    let (mut planned, mut read, mut each) = (0, 0, Vec::new());
    for sql in QUERIES {
        lake.store.clear();
        let mut query = lake.engine.execute(sql).await.unwrap();
        query.collect().await.unwrap();
        let asked = lake.store.bytes();
        // What waits for a join's filter is told beside the query, which on so little data may be through before.
        let told_all = async {
            while query.progress().bytes_planned < asked {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(5), told_all).await;
        let told = query.progress().bytes_planned;
        planned += told;
        read += asked;
        each.push((told, asked));
    }
    assert!(planned as f64 >= read as f64 * 0.9, "told {planned} of {read}: {each:?}");
    assert!(planned as f64 <= read as f64 * 1.1, "told {planned} of {read}: {each:?}");
}
