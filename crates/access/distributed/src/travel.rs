//! What travels with a plan inside of its session's settings: the query's pinned versions, a task's places, its shuffle.

use std::any::Any;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use datafusion::common::config_err;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::prelude::SessionConfig;
use forebay_client::StorageClass;
use forebay_trace::TraceContext;
use forebay_types::{Error, ObjectInfo, OperationId, PageRun, Result, SegmentId, WorkerId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// What goes along with a plan, and with each of its tasks. Settings travel as text: (key, value) of all extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Travel {
    /// [`Ticket`]
    ticket: String,
    /// [`Places`]
    places: String,
    /// The storage class of nodes that a task's results go to; empty for files.
    shuffle: String,
}

impl ConfigExtension for Travel {
    const PREFIX: &'static str = "forebay";
}

impl ExtensionOptions for Travel {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> datafusion::error::Result<()> {
        let of = match key {
            "ticket" => &mut self.ticket,
            "places" => &mut self.places,
            "shuffle" => &mut self.shuffle,
            _ => return config_err!("there is no setting forebay.{key}"),
        };
        *of = value.to_string();
        Ok(())
    }

    /// With the prefix in their keys, which an entry must have to be found again at the other end.
    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: &String| ConfigEntry {
            key: format!("{}.{key}", Self::PREFIX),
            value: (!value.is_empty()).then(|| value.clone()),
            description: "what a query's tasks know of it",
        };
        vec![entry("ticket", &self.ticket), entry("places", &self.places), entry("shuffle", &self.shuffle)]
    }
}

/// What all tasks of a query must know: they read the versions that it was planned with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) operation: OperationId,
    pub(crate) priority: i32,
    pub(crate) sql: String,
    pub(crate) pins: Vec<ObjectInfo>,
    /// Whose query it is, as its engine knows them.
    pub(crate) who: String,
    /// Where in a trace it is.
    pub(crate) trace: Option<TraceContext>,
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

/// Writes into a task's settings where its results go: nodes of this class, or files.
pub(crate) fn send_shuffle(config: &mut SessionConfig, class: Option<StorageClass>) {
    if let Some(travel) = config.options_mut().extensions.get_mut::<Travel>() {
        travel.shuffle = class.map(|class| class.as_str().to_string()).unwrap_or_default();
    }
}

/// Where the task's results go: nodes of this class, or files.
pub(crate) fn shuffle(config: &SessionConfig) -> Result<Option<StorageClass>> {
    let travel = config.options().extensions.get::<Travel>();
    let class = travel.map(|travel| travel.shuffle.as_str()).filter(|class| !class.is_empty());
    Ok(class.map(str::parse::<StorageClass>).transpose()?)
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

#[cfg(test)]
mod tests {
    use ballista_core::extension::SessionConfigHelperExt;

    use super::*;

    #[test]
    fn a_ticket_and_places_travel_in_the_settings() {
        let (sql, who) = ("select 'a.b'".to_string(), "token etl.1".to_string());
        let ticket = Ticket {
            operation: OperationId(7),
            priority: -3,
            sql,
            pins: Vec::new(),
            who,
            trace: Some(TraceContext { trace: 5, span: 6 }),
        };
        let places: Places = vec![(SegmentId(9), PageRun::new(1, 2), WorkerId(4))];
        let mut sent = crate::settings::of_cluster(SessionConfig::new());
        send(&mut sent, Some(&ticket), None).unwrap();
        send(&mut sent, None, Some(&places)).unwrap();
        send_shuffle(&mut sent, Some(StorageClass::Disk));
        let blank = crate::settings::of_cluster(SessionConfig::new());
        assert!(super::ticket(&blank).unwrap().is_none());
        let got = blank.clone().update_from_key_value_pair(&sent.to_key_value_pairs());
        let read = super::ticket(&got).unwrap().unwrap();
        assert_eq!((read.operation, read.priority, read.sql, read.who), (OperationId(7), -3, ticket.sql, ticket.who));
        assert_eq!((read.trace, ticket.trace.is_some()), (ticket.trace, true));
        assert_eq!(super::places(&got).unwrap(), Some(places));
        assert_eq!(shuffle(&got).unwrap(), Some(StorageClass::Disk));
        assert_eq!(shuffle(&blank).unwrap(), None);
    }
}
