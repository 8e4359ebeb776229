//! What `/api/v1` shows that the coordinator does not know: SQL, and the scheduler's jobs.

use forebay_api::{ColumnOf, ReadSoFar, Statement, Statements};
use forebay_flight::Connect;
use forebay_sql::Query;
use forebay_sql::arrow::datatypes::FieldRef;
use forebay_sql::output::{Form, Writer};
use forebay_transport::Credential;
use forebay_types::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

/// SQL by the engines of Flight SQL: one for each statement, which reads with the rights of its caller.
pub(crate) struct ByEngines(pub(crate) Connect);

impl Statements for ByEngines {
    fn begin(&self, credential: Credential, sql: String) -> BoxFuture<'static, Result<Box<dyn Statement>>> {
        let engine = (self.0)(credential);
        async move {
            let query = engine.await?.read(&sql).await?;
            Ok(Box::new(Running(query)) as Box<dyn Statement>)
        }
        .boxed()
    }
}

struct Running(Query);

impl Statement for Running {
    fn columns(&self) -> Vec<ColumnOf> {
        let schema = self.0.schema();
        let column = |field: &FieldRef| ColumnOf { name: field.name().clone(), kind: field.data_type().to_string() };
        schema.fields().iter().map(column).collect()
    }

    fn next_rows(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        async move {
            let Some(batch) = self.0.next_batch().await.transpose()? else { return Ok(None) };
            let mut writer = Writer::new(Form::NdJson, batch.schema(), Vec::new());
            writer.write(&batch)?;
            writer.finish().map(Some)
        }
        .boxed()
    }

    fn progress(&self) -> ReadSoFar {
        let progress = self.0.progress();
        ReadSoFar { bytes_read: progress.bytes_read, tasks: progress.tasks }
    }

    fn plan(&self) -> String {
        self.0.plan_text()
    }

    fn notice(&self) -> Option<String> {
        self.0.notice().map(str::to_string)
    }
}
