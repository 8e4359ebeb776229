use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use datafusion::common::extensions_options;
use datafusion::config::ConfigExtension;
use datafusion::prelude::SessionConfig;
use forebay_types::{Error, ObjectInfo, OperationId, PageRun, Result, SegmentId, WorkerId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

extensions_options! {
    /// What goes along with a plan, and with each of its tasks. Settings travel as text.
    pub(crate) struct Travel {
        /// [`Ticket`]
        pub ticket: String, default = String::new()
        /// [`Places`]
        pub places: String, default = String::new()
    }
}

impl ConfigExtension for Travel {
    const PREFIX: &'static str = "forebay";
}

/// What all tasks of a query must know: they read the versions that it was planned with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) operation: OperationId,
    pub(crate) priority: i32,
    pub(crate) sql: String,
    pub(crate) pins: Vec<ObjectInfo>,
}

/// Where a task reads what of its input.
pub(crate) type Places = Vec<(SegmentId, PageRun, WorkerId)>;

/// Writes it into a session's settings.
pub(crate) fn send(config: &mut SessionConfig, ticket: Option<&Ticket>, places: Option<&Places>) -> Result<()> {
    let extensions = &mut config.options_mut().extensions;
    if extensions.get::<Travel>().is_none() {
        extensions.insert(Travel::default());
    }
    let Some(travel) = extensions.get_mut::<Travel>() else { return Ok(()) };
    if let Some(ticket) = ticket {
        travel.ticket = written(ticket)?;
    }
    if let Some(places) = places {
        travel.places = written(places)?;
    }
    Ok(())
}

/// The query's ticket; none where a plan came without.
pub(crate) fn ticket(config: &SessionConfig) -> Result<Option<Ticket>> {
    read(config.options().extensions.get::<Travel>().map(|travel| travel.ticket.as_str()))
}

/// The task's places; none where it reads as everyone else.
pub(crate) fn places(config: &SessionConfig) -> Result<Option<Places>> {
    read(config.options().extensions.get::<Travel>().map(|travel| travel.places.as_str()))
}

fn written(value: &impl Serialize) -> Result<String> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::internal(format!("can't write a ticket: {error}")))?;
    Ok(STANDARD_NO_PAD.encode(bytes))
}

fn read<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<T>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let bad = |error: String| {
        Error::invalid(format!("what came with a plan can't be read ({error}): is all of the cluster of one version?"))
    };
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|error| bad(error.to_string()))?;
    postcard::from_bytes(&bytes).map(Some).map_err(|error| bad(error.to_string()))
}
