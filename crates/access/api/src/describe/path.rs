//! A path, as the description has it, together with what answers it.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{get, post};
use schemars::{Schema, SchemaGenerator};

/// Makes the schema of a type.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// What is sent.
pub(crate) struct Content {
    /// Its media type.
    pub(crate) kind: &'static str,
    /// In words.
    pub(crate) about: &'static str,
    /// Of all of it; of one line where it is JSON lines, of one event's data where it is events.
    pub(crate) shape: Shape,
    /// What could be sent.
    pub(crate) example: Option<&'static str>,
}

/// A path.
pub(crate) struct Described {
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    /// Of an object with a property a parameter; none without parameters.
    pub(crate) parameters: Option<Shape>,
    /// What is asked with it, of paths that take more than parameters.
    pub(crate) body: Option<Content>,
    pub(crate) answer: Content,
    /// The statuses of what is not answered; those of tokens come by themselves.
    pub(crate) refusals: &'static [u16],
    /// It is for everybody.
    pub(crate) is_open: bool,
}

/// Routes that are described: there is no other way to add one.
pub(crate) struct Routes<S> {
    router: Router<S>,
    described: Vec<Described>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), described: Vec::new() }
    }

    /// A path: asked by POST where it takes a body, and by GET where not.
    pub(crate) fn with<T: 'static>(mut self, path: Described, handler: impl Handler<T, S>) -> Self {
        let method = if path.body.is_some() { post(handler) } else { get(handler) };
        self.router = self.router.route(path.path, method);
        self.described.push(path);
        self
    }

    /// The routes, and what they are.
    pub(crate) fn into_parts(self) -> (Router<S>, Vec<Described>) {
        (self.router, self.described)
    }
}
