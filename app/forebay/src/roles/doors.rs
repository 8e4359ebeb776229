//! What `/api/v1` shows that the coordinator does not know: SQL, and loads.

use forebay_api::{ColumnOf, LoadAsked, LoadProgress, Loads, ReadSoFar, Statement, Statements, TellProgress};
use forebay_client::{Client, ClientSettings};
use forebay_flight::Connect;
use forebay_sql::Query;
use forebay_sql::arrow::datatypes::FieldRef;
use forebay_sql::output::{ArrowStream, Form, Writer};
use forebay_transport::{Credential, Security};
use forebay_types::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::loading::Loading;

/// Objects of one load over HTTP: each is known to this process, with some hundred bytes, until it is over.
const LOADED_OBJECTS_MAX: usize = 250_000;

/// Loads by a client for each, which shows what its caller has shown, and reaches the cluster as these settings say.
pub(crate) struct ByClients(pub(crate) ClientSettings);

impl Loads for ByClients {
    fn load(&self, credential: Credential, asked: LoadAsked, tell: TellProgress) -> BoxFuture<'static, Result<u64>> {
        let security = Security::holder(credential).with_tls(self.0.security.tls.clone());
        let settings = ClientSettings { security, ..self.0.clone() };
        async move {
            let client = Client::connect(settings).await?;
            let LoadAsked { path, columns, condition } = asked;
            let loading = Loading::of(&client, &path, &columns, condition.as_deref(), LOADED_OBJECTS_MAX).await?;
            let (objects, bytes) = (loading.objects() as u64, loading.bytes);
            let at = move |bytes_done| LoadProgress { objects, bytes, bytes_done };
            tell(at(0));
            Ok(loading.run(move |bytes_done| tell(at(bytes_done))).await?.bytes_fetched)
        }
        .boxed()
    }
}

/// SQL by the engines of Flight SQL: one for each statement, which reads with the rights of its caller.
pub(crate) struct ByEngines(pub(crate) Connect);

impl Statements for ByEngines {
    fn begin(&self, credential: Credential, sql: String) -> BoxFuture<'static, Result<Box<dyn Statement>>> {
        let engine = (self.0)(credential);
        async move {
            let query = engine.await?.read(&sql).await?;
            Ok(Box::new(Running { query, arrow: None, is_over: false }) as Box<dyn Statement>)
        }
        .boxed()
    }
}

struct Running {
    query: Query,
    /// What its rows are written as Arrow with, from the first of them on.
    arrow: Option<ArrowStream>,
    /// The stream's end was given out.
    is_over: bool,
}

impl Statement for Running {
    fn columns(&self) -> Vec<ColumnOf> {
        let schema = self.query.schema();
        let column = |field: &FieldRef| ColumnOf { name: field.name().clone(), kind: field.data_type().to_string() };
        schema.fields().iter().map(column).collect()
    }

    fn next_rows(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        async move {
            let Some(batch) = self.query.next_batch().await.transpose()? else { return Ok(None) };
            let mut writer = Writer::new(Form::NdJson, batch.schema(), Vec::new());
            writer.write(&batch)?;
            writer.finish().map(Some)
        }
        .boxed()
    }

    fn next_arrow(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        async move {
            if self.is_over {
                return Ok(None);
            }
            let rows = self.query.next_batch().await.transpose()?;
            let mut arrow = if let Some(arrow) = self.arrow.take() { arrow } else { ArrowStream::new(&self.query.schema())? };
            let bytes = match rows {
                Some(rows) => {
                    let bytes = arrow.write(&rows)?;
                    self.arrow = Some(arrow);
                    bytes
                }
                None => {
                    self.is_over = true;
                    arrow.finish()?
                }
            };
            Ok(Some(bytes))
        }
        .boxed()
    }

    fn progress(&self) -> ReadSoFar {
        let progress = self.query.progress();
        ReadSoFar { bytes_read: progress.bytes_read, tasks: progress.tasks }
    }

    fn plan(&self) -> String {
        self.query.plan_text()
    }

    fn notice(&self) -> Option<String> {
        self.query.notice().map(str::to_string)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_sql::arrow::array::{AsArray, RecordBatch};
    use forebay_sql::arrow::datatypes::Int64Type;
    use forebay_sql::arrow::ipc::reader::StreamReader;
    use forebay_sql::{Engine, EngineSettings};

    use super::*;

    /// What a reader of Arrow makes of a statement's bytes.
    async fn streamed(sql: &str) -> Result<Vec<RecordBatch>> {
        let connect: Connect =
            Arc::new(|_| Box::pin(async { Ok(Engine::over_object_store(Vec::new(), EngineSettings::default())) }));
        let credential = Credential::owner(&forebay_transport::random_secret()?)?;
        let mut statement = ByEngines(connect).begin(credential, sql.to_string()).await?;
        let mut bytes = Vec::new();
        while let Some(part) = statement.next_arrow().await? {
            bytes.extend(part);
        }
        assert!(statement.next_arrow().await?.is_none(), "its end is given out once");
        let stream = StreamReader::try_new(&bytes[..], None).expect("a stream of Arrow");
        Ok(stream.map(|rows| rows.expect("rows")).collect())
    }

    #[tokio::test]
    async fn a_statement_is_one_stream_of_arrow() {
        let rows = streamed("select x, 'a text' as t from (values (1), (2)) as v(x) order by x").await.expect("rows");
        let numbers = rows.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec());
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
        assert_eq!(rows[0].column(1).as_string::<i32>().value(0), "a text", "in a type that all readers know");
        let none = streamed("select 1 as one where false").await.expect("no rows, but a stream");
        assert_eq!(none.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        assert!(streamed("select 1 / (x - 1) from (values (1)) as v(x)").await.is_err(), "and no end where it fails");
        assert!(streamed("create view v as select 1").await.is_err(), "it only reads");
    }
}
