//! `/api/v1/load`: what lies below a path into the tiers, as `forebay load` brings it, with its progress and an end that can be ordered.
//!
//! Owns: who may have something brought, see it and end it, how many loads there are at a time, and what is known of the last ones.
//!
//! Never does: bring anything. Who is handed over as [`Loads`] does, with the rights of who asks.
//!
//! Start with [`routes`].

mod book;

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::{Json, Router};
use forebay_rights::{Who, needs};
use forebay_trace::Span;
use forebay_transport::{Credential, Deed, caught_future, is_audited, tell};
use forebay_types::{Error, ForebayPath, Result};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Readers;
use crate::asking::{Asked, PATH_PATTERN, Places, PlacesMax, from_text};
use crate::describe::{Content, Described, Routes, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;
use book::{Book, Known, LoadState};

const PATH: &str = "/api/v1/load";
/// Loads at a time: each has 64 messages under way itself.
const PLACES: PlacesMax = PlacesMax { all: 16, of_one: 4 };

/// What is to be brought.
#[derive(Clone, Debug)]
pub struct LoadAsked {
    /// An object, or a folder with all that is below it.
    pub path: ForebayPath,
    /// Only these columns; all where there are none.
    pub columns: Vec<String>,
    /// Only what may have rows of which this is true.
    pub condition: Option<String>,
}

/// How far a load is.
#[derive(Clone, Copy, Debug)]
pub struct LoadProgress {
    /// Objects of which something is brought.
    pub objects: u64,
    /// Bytes that will be in the tiers.
    pub bytes: u64,
    /// Of these, bytes that are there.
    pub bytes_done: u64,
}

/// Is told how far a load is: once it is known what it brings, and as it comes.
pub type TellProgress = Box<dyn Fn(LoadProgress) + Send + Sync>;

/// Brings data into the tiers.
pub trait Loads: Send + Sync + 'static {
    /// Brings what is asked, with the rights of a credential and no others; the bytes that it fetched from shared storage. Dropping the
    /// future ends it, and what it has brought stays.
    fn load(&self, credential: Credential, asked: LoadAsked, tell: TellProgress) -> BoxFuture<'static, Result<u64>>;
}

/// What stands behind the `?` of a load.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BeginAsked {
    /// What is brought: an object, or a folder with all that is below it.
    #[schemars(with = "String", extend("pattern" = PATH_PATTERN), example = &"/lake/table.csv")]
    #[serde(deserialize_with = "from_text")]
    path: ForebayPath,
    /// Only these columns, with commas between them: of Parquet and table files nothing else is read then.
    #[schemars(example = &"id,name")]
    columns: Option<String>,
    /// Only row groups and pages that may have rows of which this is true, as SQL says it.
    #[serde(rename = "where")]
    #[schemars(example = &"id > 5")]
    condition: Option<String>,
}

impl From<BeginAsked> for LoadAsked {
    fn from(BeginAsked { path, columns, condition }: BeginAsked) -> Self {
        let columns = columns.iter().flat_map(|columns| columns.split(',')).map(str::to_string).collect();
        Self { path, columns, condition }
    }
}

/// What stands behind the `?` of its end.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndAsked {
    /// What the load is named by.
    #[schemars(example = &"1f00a2c45be79d03")]
    id: String,
}

/// Loads.
#[derive(JsonSchema, Serialize)]
struct LoadStates {
    /// The oldest first: those that go on, and the last hundred that are over.
    loads: Vec<LoadState>,
}

/// What all requests share.
struct Door {
    readers: Readers,
    loads: Arc<OnceLock<Arc<dyn Loads>>>,
    places: Arc<Places>,
    book: Book,
}

impl Door {
    /// Whether who sends a request administers what a load brings, whoever has begun it.
    fn administers(&self, sender: &Sender, path: &ForebayPath) -> bool {
        self.readers.may(sender, &needs::load_of_others(path.mount()))
    }
}

/// The paths, for `readers` that may read what they have brought, from when what brings it is there.
pub(crate) fn routes(readers: Readers, loads: Arc<OnceLock<Arc<dyn Loads>>>) -> (Router, Vec<Described>) {
    let states = Content::json::<LoadStates>(
        "Those that who asks has begun, and those of mounts that he administers; of who may read all mounts all of them.",
    );
    let all = Described::new(Verb::Get, PATH, "Loads, and how far each is.", states);
    let of_one = |verb, about| Described::new(verb, PATH, about, Content::json::<LoadState>("The load, and how far it is."));
    let about =
        "Begins to bring what lies below a path into the tiers, or what a query of columns and a condition would read of it.";
    let begins = of_one(Verb::Post, about).asked_by::<BeginAsked>().refused_with(&[400, 404, 429, 503]);
    let ends = of_one(Verb::Delete, "Ends a load. What it has brought stays.").asked_by::<EndAsked>().refused_with(&[400, 404]);
    let (router, described) = Routes::new().with(all, list).with(begins, begin).with(ends, end).into_parts();
    let door = Door { readers, loads, places: Places::new(PLACES), book: Book::default() };
    (router.with_state(Arc::new(door)), described)
}

async fn list(State(door): State<Arc<Door>>, sender: Sender) -> std::result::Result<Json<LoadStates>, Refusal> {
    let who = door.readers.check(&sender, &needs::statement(), "loads", PATH)?.to_string();
    let sees_all = door.readers.may(&sender, &needs::shown());
    let sees = |of: &str, path: &ForebayPath| sees_all || of == who || door.administers(&sender, path);
    Ok(Json(LoadStates { loads: door.book.list(sees) }))
}

async fn begin(
    State(door): State<Arc<Door>>,
    sender: Sender,
    asked: std::result::Result<Asked<BeginAsked>, Refusal>,
) -> std::result::Result<Json<LoadState>, Refusal> {
    let asked = LoadAsked::from(door.readers.asked(&sender, "load", PATH, asked)?);
    let on = asked.path.to_string();
    let (who, credential) = door.readers.caller(&sender, &needs::object(asked.path.mount()), "load", &on)?;
    let loads = door.loads.get().cloned().ok_or_else(|| Error::not_found("this process brings nothing: its coordinator does"))?;
    let place = door.places.take(&who.to_string())?;
    let mut span = Span::asked(sender.trace, "http load");
    span.set("forebay.path", || on.clone());
    audit(&who, &sender, "load", on);
    let load = Known::new(who.to_string(), asked);
    let known = Arc::clone(&load);
    door.book.begin(Arc::clone(&load), async move {
        let told = Arc::clone(&known);
        let tell: TellProgress = Box::new(move |progress| told.is_at(progress));
        let brought = caught_future(span.around(loads.load(credential, known.asked.clone(), tell))).await;
        let outcome = brought.unwrap_or_else(|| Err(Error::internal("it failed by a defect: the log of the process has more")));
        if let Err(error) = &outcome {
            tracing::debug!(%error, "a load failed");
            span.fail(error);
        }
        known.ended(outcome);
        drop(place);
    });
    Ok(Json(load.state()))
}

async fn end(
    State(door): State<Arc<Door>>,
    sender: Sender,
    asked: std::result::Result<Asked<EndAsked>, Refusal>,
) -> std::result::Result<Json<LoadState>, Refusal> {
    let EndAsked { id } = door.readers.asked(&sender, "load_cancel", PATH, asked)?;
    let who = door.readers.check(&sender, &needs::statement(), "load_cancel", &id)?;
    let own = who.to_string();
    let ended = door.book.cancel(&id, |of, path| of == own || door.administers(&sender, path));
    let ended = ended.ok_or_else(|| Error::not_found(format!("{id}: there is no such load, or somebody else has begun it")))?;
    audit(&who, &sender, "load_cancel", id);
    Ok(Json(ended))
}

/// The audit log is told of what was let in.
fn audit(who: &Who, sender: &Sender, what: &'static str, on: String) {
    if is_audited() {
        tell(who, &sender.address, &Deed { port: "http", what, on }, None);
    }
}
