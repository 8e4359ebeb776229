//! What all calls pass, and who makes them.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_sql::Engine;
use forebay_trace::Span;
use forebay_transport::caught_future;
use futures::future::BoxFuture;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::{Request, Status};

use crate::auth::{Shown, nothing, shown};
use crate::callers::{Callers, Connection};

type Call = http::Request<Body>;
type Answer = http::Response<Body>;

/// Who calls, and with what: comes with each call that got past the door.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) shown: Shown,
    pub(crate) engine: Engine,
}

impl Caller {
    /// Who made a call.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        request.extensions().get::<Self>().cloned().ok_or_else(nothing)
    }
}

/// The door before all calls: none gets further whose caller is not let in, whatever it asks. A call that panics is answered, and
/// the others of its connection go on.
#[derive(Clone)]
pub(crate) struct Door<S> {
    inner: S,
    callers: Arc<Callers>,
}

impl<S> Door<S> {
    pub(crate) fn new(inner: S, callers: Callers) -> Self {
        Self { inner, callers: Arc::new(callers) }
    }
}

impl<S> Service<Call> for Door<S>
where
    S: Service<Call, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        // The one that is ready, not its copy.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let callers = Arc::clone(&self.callers);
        Box::pin(async move {
            let answered = caught_future(async {
                let shown = shown(call.headers())?;
                let connection = call.extensions().get::<Connection>().cloned();
                let engine = callers.engine(&shown, connection.as_ref()).await?;
                // Of who is let in only.
                let mut span = Span::of_request(call.headers(), "flight");
                span.set("rpc.method", || call.uri().path().to_string());
                call.extensions_mut().insert(Caller { shown, engine });
                Ok(span.around(inner.call(call)).await.unwrap_or_else(|never| match never {}))
            });
            let answered = answered.await.unwrap_or_else(|| Err(Status::internal("this call failed within; the server goes on")));
            Ok(answered.unwrap_or_else(Status::into_http))
        })
    }
}

impl<S: NamedService> NamedService for Door<S> {
    const NAME: &'static str = S::NAME;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nobody gets to.
    #[derive(Clone)]
    struct Behind;

    impl Service<Call> for Behind {
        type Response = Answer;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Answer, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Call) -> Self::Future {
            std::future::ready(Ok(Answer::new(Body::empty())))
        }
    }

    #[tokio::test]
    async fn a_call_that_panics_is_answered_and_others_go_on() {
        let callers = Callers::new(Arc::new(|credential: forebay_transport::Credential| {
            Box::pin(async move { panic!("a defect with {credential:?}") })
        }));
        let mut door = Door::new(Behind, callers);
        for _ in 0..3 {
            let mut call = Call::new(Body::empty());
            call.headers_mut().insert(http::header::AUTHORIZATION, "Bearer a secret: of the tests".parse().unwrap());
            let answer = door.call(call).await.unwrap();
            assert_eq!(Status::from_header_map(answer.headers()).unwrap().code(), tonic::Code::Internal);
        }
        let nobody = door.call(Call::new(Body::empty())).await.unwrap();
        assert_eq!(Status::from_header_map(nobody.headers()).unwrap().code(), tonic::Code::Unauthenticated);
    }
}
