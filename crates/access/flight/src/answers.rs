//! What answers are made of: where rows are fetched, and rows and schemas in the types that all clients know.

use std::pin::Pin;

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, IpcMessage, SchemaAsIpc, Ticket};
use bytes::Bytes;
use forebay_sql::Query;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::arrow::datatypes::{Schema, SchemaRef};
use forebay_sql::arrow::ipc::writer::IpcWriteOptions;
use forebay_sql::output::{plain_rows, plain_schema};
use forebay_types::Error;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use tonic::{Response, Status};

use crate::status::{internal, refused, status};

pub(crate) type Answer<T> = Result<Response<T>, Status>;
type Rows = BoxStream<'static, Result<RecordBatch, FlightError>>;
type Sent = Pin<Box<dyn futures::Stream<Item = Result<FlightData, Status>> + Send>>;

/// The columns as they are sent: dictionaries and views are not.
pub(crate) fn on_the_wire(schema: &SchemaRef) -> SchemaRef {
    let schema = plain_schema(schema);
    let encoder = FlightDataEncoderBuilder::new().with_schema(schema.clone()).build(stream::empty());
    encoder.known_schema().unwrap_or(schema)
}

/// Where to fetch what was asked for: here.
pub(crate) fn info(schema: &Schema, ticket: Vec<u8>, asked: FlightDescriptor) -> Answer<FlightInfo> {
    let endpoint = FlightEndpoint::new().with_ticket(Ticket { ticket: ticket.into() });
    let info = FlightInfo::new().with_endpoint(endpoint).with_descriptor(asked).try_with_schema(schema).map_err(internal)?;
    Ok(Response::new(info))
}

fn rows(schema: SchemaRef, rows: Rows) -> Response<Sent> {
    let encoded = FlightDataEncoderBuilder::new().with_schema(schema).build(rows);
    Response::new(Box::pin(encoded.map_err(refused)))
}

pub(crate) fn one(batch: RecordBatch) -> Response<Sent> {
    rows(batch.schema(), stream::once(std::future::ready(Ok(batch))).boxed())
}

/// What a statement that writes says, which is there.
pub(crate) fn rows_there(schema: &SchemaRef, batches: Vec<RecordBatch>) -> Response<Sent> {
    let schema = plain_schema(schema);
    let plain: Vec<_> = batches.iter().map(|batch| plain_rows(batch, &schema).map_err(FlightError::from)).collect();
    rows(schema, stream::iter(plain).boxed())
}

/// The rows of a query as they come; dropping them ends it.
pub(crate) fn rows_of(query: Box<Query>) -> Response<Sent> {
    let schema = plain_schema(&query.schema());
    let begin = (query, schema.clone());
    let batches = stream::unfold(begin, |(mut query, schema)| async move {
        let batch = query.next_batch().await?;
        let batch = batch.map_err(|error: Error| FlightError::Tonic(Box::new(status(&error))));
        Some((batch.and_then(|batch| plain_rows(&batch, &schema).map_err(FlightError::from)), (query, schema)))
    });
    rows(schema, batches.boxed())
}

/// A schema as an answer names it: in plain types, as its rows will be.
pub(crate) fn schema_bytes(schema: &SchemaRef) -> Result<Bytes, Status> {
    let message: IpcMessage =
        SchemaAsIpc::new(&plain_schema(schema), &IpcWriteOptions::default()).try_into().map_err(internal)?;
    Ok(message.0)
}
