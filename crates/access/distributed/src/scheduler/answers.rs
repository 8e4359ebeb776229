//! The scheduler's side of `control`: jobs, transfers and slots out of the books, and the cancelling of a job.

use std::sync::Arc;

use arrow_flight::{Action, ActionType, Result as Answer};
use forebay_jobs::{Books, Carrier};
use futures::StreamExt;
use parking_lot::Mutex;
use serde::Serialize;
use tonic::{Request, Response, Status};

use super::Server;
use super::watch::close_over;
use crate::actions::{Actions, Answered};
use crate::control::{Ask, ClusterState};

/// Answers what people ask: as actions of Arrow Flight, with JSON as their results, at the port of the scheduler.
pub(super) struct Answers {
    pub(super) server: Server,
    pub(super) books: Arc<Mutex<Books>>,
    pub(super) carrier: Arc<Carrier>,
}

impl Answers {
    fn cluster(&self) -> ClusterState {
        let counts = self.books.lock().counts();
        ClusterState {
            executors: counts.executors,
            slots: counts.slots,
            slots_free: counts.slots.saturating_sub(counts.tasks_running),
            arriving_bytes: counts.arriving_bytes,
            brought_bytes: counts.brought_bytes,
        }
    }

    async fn cancel(&self, name: &str) -> Result<(), Status> {
        let jobs = self.books.lock().named(name);
        if jobs.is_empty() {
            return Err(Status::not_found(format!("there is no running job {name}: `forebay jobs` lists them")));
        }
        for job in jobs {
            self.server.cancel_job(job.into()).await.map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(value).map_err(|error| Status::internal(error.to_string()))
}

#[tonic::async_trait]
impl Actions for Answers {
    const WHO: &'static str = "the scheduler";

    async fn act(&self, request: Request<Action>) -> Result<Response<Answered<Answer>>, Status> {
        let action = request.into_inner();
        let ask = Ask::ALL.into_iter().find(|ask| ask.name() == action.r#type);
        let ask = ask.ok_or_else(|| Status::invalid_argument(format!("there is no action {:?}", action.r#type)))?;
        let argument = std::str::from_utf8(&action.body).map_err(|_| Status::invalid_argument("the argument is no text"))?;
        let body = match ask {
            Ask::Cluster => json(&self.cluster())?,
            Ask::Jobs => {
                close_over(&self.server, &self.books).await;
                json(&self.books.lock().shown())?
            }
            Ask::Tasks => {
                // Those of a job that is over are too.
                close_over(&self.server, &self.books).await;
                json(&self.books.lock().tasks_shown())?
            }
            Ask::Transfers => json(&self.carrier.shown())?,
            Ask::Cancel => json(&self.cancel(argument).await?)?,
        };
        let answer = futures::stream::once(async { Ok(Answer { body: body.into() }) });
        Ok(Response::new(answer.boxed()))
    }

    async fn list(&self) -> Result<Response<Answered<ActionType>>, Status> {
        let actions = Ask::ALL.map(|ask| Ok(ActionType { r#type: ask.name().to_string(), description: String::new() }));
        Ok(Response::new(futures::stream::iter(actions).boxed()))
    }
}
