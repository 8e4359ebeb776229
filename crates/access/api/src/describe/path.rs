//! A path, as the description has it, together with what answers it.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{delete, get, post, put};
use schemars::{JsonSchema, Schema, SchemaGenerator};

pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// How a path is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    /// As OpenAPI has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }
}

/// What is sent.
pub(crate) struct Content {
    /// Its media type.
    pub(crate) kind: &'static str,
    pub(crate) about: &'static str,
    /// Of all of it; of one line where it is JSON lines, of one event where it is events.
    pub(crate) shape: Shape,
    pub(crate) example: Option<&'static str>,
}

impl Content {
    pub(crate) const fn json<T: JsonSchema>(about: &'static str) -> Self {
        Self { kind: super::JSON, about, shape: shape_of::<T>, example: None }
    }
}

fn shape_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A path, asked in one way; there may be others for it.
pub(crate) struct Described {
    pub(crate) verb: Verb,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    /// Of an object with a property a parameter; none without parameters.
    pub(crate) parameters: Option<Shape>,
    /// What is asked with it, of paths that take more than parameters.
    pub(crate) body: Option<Content>,
    pub(crate) answer: Content,
    /// What is answered instead to who accepts that, by the header `Accept`.
    pub(crate) or: Option<Content>,
    /// The statuses of what is not answered; those of tokens come by themselves.
    pub(crate) refusals: &'static [u16],
    /// It is for everybody.
    pub(crate) is_open: bool,
}

impl Described {
    /// A path without parameters, for those who may, who are refused nothing else.
    pub(crate) const fn new(verb: Verb, path: &'static str, about: &'static str, answer: Content) -> Self {
        Self { verb, path, about, parameters: None, body: None, answer, or: None, refusals: &[], is_open: false }
    }

    /// The same with a parameter a field of a type.
    pub(crate) const fn asked_by<T: JsonSchema>(mut self) -> Self {
        self.parameters = Some(T::json_schema);
        self
    }

    pub(crate) const fn with_body(mut self, body: Content) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) const fn refused_with(mut self, refusals: &'static [u16]) -> Self {
        self.refusals = refusals;
        self
    }
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

    /// A path that is asked by a verb.
    pub(crate) fn with<T: 'static>(mut self, path: Described, handler: impl Handler<T, S>) -> Self {
        let takes_body = matches!(path.verb, Verb::Post | Verb::Put);
        assert!(path.body.is_none() || takes_body, "{}: nothing is sent with it", path.path);
        let method = match path.verb {
            Verb::Get => get(handler),
            Verb::Post => post(handler),
            Verb::Put => put(handler),
            Verb::Delete => delete(handler),
        };
        self.router = self.router.route(path.path, method);
        self.described.push(path);
        self
    }

    pub(crate) fn into_parts(self) -> (Router<S>, Vec<Described>) {
        (self.router, self.described)
    }
}
