//! The calls of Flight SQL, from statement over ticket to rows, with prepared statements and lists of tables.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightService as Wire;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt,
    SqlInfo, TicketStatementQuery,
};
use arrow_flight::{Action, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, Ticket};
use bytes::Bytes;
use forebay_runtime::time::interval;
use forebay_sql::Query;
use forebay_sql::arrow::array::{AsArray, RecordBatch};
use forebay_sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use futures::stream;
use prost::Message;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status, Streaming};

use crate::answers::{Answer, info, on_the_wire, one, rows_of, rows_there, schema_bytes};
use crate::door::Caller;
use crate::metadata::{self, CATALOG, SCHEMA, TABLE_TYPES, built};
use crate::parameters::{self, Bound};
use crate::shelf::Shelf;
use crate::status::{internal, status};

/// Statements that were started and whose rows nobody has fetched yet, and how long they wait.
const QUERIES_MAX: usize = 1_000;
const QUERY_IDLE: Duration = Duration::from_secs(300);
/// Prepared statements that are not closed, and how long they last unused.
const PREPARED_MAX: usize = 10_000;
const PREPARED_IDLE: Duration = Duration::from_secs(3_600);
/// Bytes of the texts of these and of those, with the values of their parameters.
const TEXTS_BYTES_MAX: usize = 64 << 20;

/// Asks for the columns of something, and where its rows wait.
type Asking = Request<FlightDescriptor>;
/// Asks for those rows.
type Fetching = Request<Ticket>;
/// Rows on their way.
type RowStream = <FlightService as Wire>::DoGetStream;

/// What the calls of Flight SQL mean here. A statement is planned once: the call that asks for its columns starts it and
/// pins its versions, the call with the ticket takes its rows. One that writes has written when the first of them answers:
/// clients that want no rows of it, as `execute` of Python's DB API, never come back.
pub(crate) struct FlightService {
    queries: Arc<Shelf<Answered>>,
    prepared: Arc<Shelf<Prepared>>,
    _sweeping: AbortOnDropHandle<()>,
}

/// What waits behind a ticket.
enum Answered {
    /// Rows to come.
    Coming(Box<Query>),
    /// What a statement that has written says of that.
    Written(SchemaRef, Vec<RecordBatch>),
}

/// A statement that runs when it is asked to, with the values bound last.
#[derive(Clone)]
struct Prepared {
    sql: String,
    values: Option<Bound>,
}

impl FlightService {
    pub(crate) fn new() -> Self {
        let queries = Arc::new(Shelf::new(QUERIES_MAX, TEXTS_BYTES_MAX, QUERY_IDLE));
        let prepared = Arc::new(Shelf::new(PREPARED_MAX, TEXTS_BYTES_MAX, PREPARED_IDLE));
        let sweep = {
            let (queries, prepared) = (Arc::clone(&queries), Arc::clone(&prepared));
            async move {
                let mut tick = interval(QUERY_IDLE / 10);
                loop {
                    tick.tick().await;
                    queries.sweep();
                    prepared.sweep();
                }
            }
        };
        Self { queries, prepared, _sweeping: AbortOnDropHandle::new(forebay_runtime::spawn(sweep)) }
    }

    /// Starts a statement, and runs one that writes to its end; its rows wait behind the ticket.
    async fn begin(&self, sql: &str, values: Option<Bound>, asked: Asking) -> Answer<FlightInfo> {
        let caller = Caller::of(&asked)?;
        let bytes = size(sql, values.as_ref());
        let mut query = start(&caller, sql, values).await?;
        let schema = on_the_wire(&query.schema());
        let notice = query.notice().unwrap_or_default().to_string();
        let answered = match query.writes() {
            true => Answered::Written(query.schema(), query.collect().await.map_err(|error| status(&error))?),
            false => Answered::Coming(Box::new(query)),
        };
        let ticket = TicketStatementQuery { statement_handle: self.queries.put(&caller.shown, bytes, answered) };
        let mut answer = info(&schema, ticket.as_any().encode_to_vec(), asked.into_inner())?;
        answer.get_mut().app_metadata = notice.into();
        Ok(answer)
    }

    /// Runs a statement to its end; gives the number of rows it wrote. 0 for definitions: -1 would have JDBC's driver run
    /// them once more, as queries.
    async fn run(&self, caller: &Caller, sql: &str, values: Option<Bound>) -> Result<i64, Status> {
        let mut query = start(caller, sql, values).await?;
        let batches = query.collect().await.map_err(|error| status(&error))?;
        Ok(batches.iter().filter_map(written).reduce(|sum, rows| sum + rows).unwrap_or(0))
    }

    fn prepared(&self, caller: &Caller, handle: &[u8]) -> Result<Prepared, Status> {
        self.prepared.with(&caller.shown, handle, |prepared| prepared.clone()).ok_or_else(|| {
            Status::not_found(
                "there is no such prepared statement of this token: it was closed, unused for an hour, or gave way to newer ones",
            )
        })
    }
}

/// What a statement takes.
fn size(sql: &str, values: Option<&Bound>) -> usize {
    sql.len() + values.map_or(0, |bound| bound.bytes)
}

async fn start(caller: &Caller, sql: &str, values: Option<Bound>) -> Result<Query, Status> {
    let started = match values {
        Some(Bound { values, .. }) => caller.engine.execute_with(sql, values).await,
        None => caller.engine.execute(sql).await,
    };
    started.map_err(|error| status(&error))
}

/// The count that a writing statement gives.
fn written(batch: &RecordBatch) -> Option<i64> {
    let counts = batch.column_by_name("count")?.as_primitive_opt::<UInt64Type>()?;
    Some(counts.iter().flatten().sum::<u64>() as i64)
}

#[tonic::async_trait]
impl FlightSqlService for FlightService {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Pin<Box<dyn futures::Stream<Item = Result<HandshakeResponse, Status>> + Send>>> {
        // The same from now on as it stands, for who has shown it as a password.
        let caller = Caller::of(&request)?;
        let answer = HandshakeResponse { protocol_version: 0, payload: Bytes::new() };
        let mut response: Response<Pin<Box<dyn futures::Stream<Item = _> + Send>>> =
            Response::new(Box::pin(stream::once(std::future::ready(Ok(answer)))));
        let bearer = format!("Bearer {}", caller.shown.0);
        response.metadata_mut().insert("authorization", bearer.parse().map_err(internal)?);
        Ok(response)
    }

    async fn get_flight_info_statement(&self, query: CommandStatementQuery, request: Asking) -> Answer<FlightInfo> {
        self.begin(&query.query, None, request).await
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, request: Fetching) -> Answer<RowStream> {
        let answered = self.queries.take(&Caller::of(&request)?.shown, &ticket.statement_handle).ok_or_else(|| {
            Status::not_found(
                "there are no such rows of this token: they were fetched already, nobody fetched them for 5 minutes, or they gave \
                 way to newer ones; run the statement again",
            )
        })?;
        Ok(match answered {
            Answered::Coming(query) => rows_of(query),
            Answered::Written(schema, batches) => rows_there(&schema, batches),
        })
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        self.run(&Caller::of(&request)?, &update.query, None).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        request: ActionCreatePreparedStatementRequest,
        action: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let sql = parameters::numbered(&request.query);
        let caller = Caller::of(&action)?;
        let described = caller.engine.describe(&sql).await.map_err(|error| status(&error))?;
        let parameters =
            described.parameters.iter().map(|(name, kind)| Field::new(name, kind.clone().unwrap_or(DataType::Null), true));
        let parameter_schema = schema_bytes(&Arc::new(Schema::new(parameters.collect::<Vec<_>>())))?;
        // Clients take a statement without columns for one that is to be run as an update.
        let columns = if described.writes { Arc::new(Schema::empty()) } else { on_the_wire(&described.schema) };
        let handle = self.prepared.put(&caller.shown, sql.len(), Prepared { sql, values: None });
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle,
            dataset_schema: schema_bytes(&columns)?,
            parameter_schema,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        request: ActionClosePreparedStatementRequest,
        action: Request<Action>,
    ) -> Result<(), Status> {
        self.prepared.take(&Caller::of(&action)?.shown, &request.prepared_statement_handle);
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        statement: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let (caller, handle) = (Caller::of(&request)?, statement.prepared_statement_handle);
        let prepared = self.prepared(&caller, &handle)?;
        let values = parameters::read(request.into_inner()).await?;
        let bytes = size(&prepared.sql, values.as_ref());
        self.prepared.change(&caller.shown, &handle, bytes, |prepared| prepared.values = values);
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn do_put_prepared_statement_update(
        &self,
        statement: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let caller = Caller::of(&request)?;
        let prepared = self.prepared(&caller, &statement.prepared_statement_handle)?;
        let values = parameters::read(request.into_inner()).await?;
        self.run(&caller, &prepared.sql, values.or(prepared.values)).await
    }

    async fn get_flight_info_prepared_statement(
        &self,
        statement: CommandPreparedStatementQuery,
        request: Asking,
    ) -> Answer<FlightInfo> {
        let prepared = self.prepared(&Caller::of(&request)?, &statement.prepared_statement_handle)?;
        self.begin(&prepared.sql, prepared.values, request).await
    }

    async fn get_flight_info_catalogs(&self, query: CommandGetCatalogs, request: Asking) -> Answer<FlightInfo> {
        info(&query.into_builder().schema(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, _request: Fetching) -> Answer<RowStream> {
        let mut catalogs = query.into_builder();
        catalogs.append(CATALOG);
        built(catalogs.build()).map(one)
    }

    async fn get_flight_info_schemas(&self, query: CommandGetDbSchemas, request: Asking) -> Answer<FlightInfo> {
        let ticket = query.as_any().encode_to_vec();
        info(&query.into_builder().schema(), ticket, request.into_inner())
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, _request: Fetching) -> Answer<RowStream> {
        let mut schemas = query.into_builder();
        schemas.append(CATALOG, SCHEMA);
        built(schemas.build()).map(one)
    }

    async fn get_flight_info_tables(&self, query: CommandGetTables, request: Asking) -> Answer<FlightInfo> {
        let ticket = query.as_any().encode_to_vec();
        info(&query.into_builder().schema(), ticket, request.into_inner())
    }

    async fn do_get_tables(&self, query: CommandGetTables, request: Fetching) -> Answer<RowStream> {
        let with_schema = query.include_schema;
        let mut tables = query.into_builder();
        for (table, schema) in metadata::tables(&Caller::of(&request)?.engine, with_schema).await? {
            tables.append(CATALOG, SCHEMA, &table.name, table.kind, &schema).map_err(internal)?;
        }
        built(tables.build()).map(one)
    }

    async fn get_flight_info_table_types(&self, query: CommandGetTableTypes, request: Asking) -> Answer<FlightInfo> {
        let ticket = query.as_any().encode_to_vec();
        info(&query.into_builder().schema(), ticket, request.into_inner())
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, _request: Fetching) -> Answer<RowStream> {
        let mut types = query.into_builder();
        TABLE_TYPES.iter().for_each(|name| types.append(name));
        built(types.build()).map(one)
    }

    async fn get_flight_info_sql_info(&self, query: CommandGetSqlInfo, request: Asking) -> Answer<FlightInfo> {
        let ticket = query.as_any().encode_to_vec();
        info(&metadata::sql_info()?.schema(), ticket, request.into_inner())
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _request: Fetching) -> Answer<RowStream> {
        built(query.into_builder(metadata::sql_info()?).build()).map(one)
    }

    async fn get_flight_info_primary_keys(&self, query: CommandGetPrimaryKeys, request: Asking) -> Answer<FlightInfo> {
        info(&metadata::primary_keys(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_primary_keys(&self, _query: CommandGetPrimaryKeys, _request: Fetching) -> Answer<RowStream> {
        Ok(one(RecordBatch::new_empty(metadata::primary_keys())))
    }

    async fn get_flight_info_exported_keys(&self, query: CommandGetExportedKeys, request: Asking) -> Answer<FlightInfo> {
        info(&metadata::foreign_keys(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_exported_keys(&self, _query: CommandGetExportedKeys, _request: Fetching) -> Answer<RowStream> {
        Ok(one(RecordBatch::new_empty(metadata::foreign_keys())))
    }

    async fn get_flight_info_imported_keys(&self, query: CommandGetImportedKeys, request: Asking) -> Answer<FlightInfo> {
        info(&metadata::foreign_keys(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_imported_keys(&self, _query: CommandGetImportedKeys, _request: Fetching) -> Answer<RowStream> {
        Ok(one(RecordBatch::new_empty(metadata::foreign_keys())))
    }

    async fn get_flight_info_cross_reference(&self, query: CommandGetCrossReference, request: Asking) -> Answer<FlightInfo> {
        info(&metadata::foreign_keys(), query.as_any().encode_to_vec(), request.into_inner())
    }

    async fn do_get_cross_reference(&self, _query: CommandGetCrossReference, _request: Fetching) -> Answer<RowStream> {
        Ok(one(RecordBatch::new_empty(metadata::foreign_keys())))
    }

    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}
}
