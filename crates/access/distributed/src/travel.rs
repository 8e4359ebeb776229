//! What travels with a plan inside of its session's settings: the query's pinned versions, a task's places, its shuffle.

use std::any::Any;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use datafusion::common::config_err;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::prelude::SessionConfig;
use forebay_client::StorageClass;
use forebay_jobs::{Places, Ticket};
use forebay_protocol::{PROTOCOL_VERSION, Spoken, speaking};
use forebay_types::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// What goes along with a plan, and with each of its tasks. Settings travel as text: (key, value) of all extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Travel {
    /// [`Ticket`]
    ticket: String,
    /// [`Places`]
    places: String,
    /// The storage class of nodes that a task's results go to; empty for files.
    shuffle: String,
    /// The version of the protocol that ticket and places are of; empty for [`UNSAID`]. Who does not know this setting leaves it out.
    protocol: String,
}

/// The version that did not say which it is.
const UNSAID: u16 = 8;

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
            "protocol" => &mut self.protocol,
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
        vec![
            entry("ticket", &self.ticket),
            entry("places", &self.places),
            entry("shuffle", &self.shuffle),
            entry("protocol", &self.protocol),
        ]
    }
}

/// Writes it into a session's settings.
pub(crate) fn send(config: &mut SessionConfig, ticket: Option<&Ticket>, places: Option<&Places>) -> Result<()> {
    let extensions = &mut config.options_mut().extensions;
    if extensions.get::<Travel>().is_none() {
        extensions.insert(Travel::default());
    }
    let Some(travel) = extensions.get_mut::<Travel>() else { return Ok(()) };
    let ours = PROTOCOL_VERSION.to_string();
    match ticket {
        Some(ticket) => travel.ticket = written(ticket)?,
        // One version is said of all: what came from a client of the one before is written anew.
        None if !travel.ticket.is_empty() && travel.protocol != ours => {
            travel.ticket = written(&read::<Ticket>(travel, &travel.ticket)?)?;
        }
        None => {}
    }
    if let Some(places) = places {
        travel.places = written(places)?;
    }
    travel.protocol = ours;
    Ok(())
}

/// Writes into a task's settings where its results go: nodes of this class, or files.
pub(crate) fn send_shuffle(config: &mut SessionConfig, class: Option<StorageClass>) {
    if let Some(travel) = config.options_mut().extensions.get_mut::<Travel>() {
        travel.shuffle = class.map(|class| class.as_str().to_string()).unwrap_or_default();
        debug_assert!(shuffle(config).is_ok_and(|read| read == class), "what is sent is read as it was");
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
    came(config, |travel| travel.ticket.as_str())
}

/// The task's places; none where it reads as everyone else.
pub(crate) fn places(config: &SessionConfig) -> Result<Option<Places>> {
    came(config, |travel| travel.places.as_str())
}

fn written(value: &impl Serialize) -> Result<String> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::internal(format!("can't write a ticket: {error}")))?;
    Ok(STANDARD_NO_PAD.encode(bytes))
}

fn came<T: DeserializeOwned>(config: &SessionConfig, of: impl Fn(&Travel) -> &str) -> Result<Option<T>> {
    let travel = config.options().extensions.get::<Travel>().filter(|&travel| !of(travel).is_empty());
    travel.map(|travel| read(travel, of(travel))).transpose()
}

fn read<T: DeserializeOwned>(travel: &Travel, text: &str) -> Result<T> {
    let bad = |error: String| {
        Error::invalid(format!(
            "what came with a plan can't be read ({error}): upgrade executors first, then the scheduler, and who gives it queries \
             last"
        ))
    };
    let version = match travel.protocol.as_str() {
        "" => UNSAID,
        said => said.parse::<u16>().map_err(|_| bad(format!("{said:?} is no version")))?,
    };
    let version = Spoken::up_to(PROTOCOL_VERSION).agree(Spoken { oldest: version, newest: version });
    let version = version.map_err(|error| bad(error.message().to_string()))?;
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|error| bad(error.to_string()))?;
    speaking(version, || postcard::from_bytes(&bytes)).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use ballista_core::extension::SessionConfigHelperExt;
    use forebay_trace::TraceContext;
    use forebay_types::{OperationId, PageRun, SegmentId, WorkerId};

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

    fn of_version(protocol: &str) -> SessionConfig {
        let ticket = Ticket { sql: "select 1".to_string(), ..Ticket::silent(OperationId(7)) };
        let mut config = crate::settings::of_cluster(SessionConfig::new());
        send(&mut config, Some(&ticket), None).unwrap();
        config.options_mut().extensions.get_mut::<Travel>().unwrap().protocol = protocol.to_string();
        config
    }

    #[test]
    fn a_ticket_of_the_version_before_is_read_and_goes_on_in_this_one() {
        for before in ["", "8"] {
            let mut config = of_version(before);
            assert_eq!(ticket(&config).unwrap().unwrap().operation, OperationId(7));
            send(&mut config, None, Some(&Places::new())).unwrap();
            assert_eq!(config.options().extensions.get::<Travel>().unwrap().protocol, PROTOCOL_VERSION.to_string());
            assert_eq!(ticket(&config).unwrap().unwrap().sql, "select 1");
        }
    }

    #[test]
    fn a_ticket_of_another_version_is_refused_by_its_number() {
        let next = (PROTOCOL_VERSION + 1).to_string();
        let error = ticket(&of_version(&next)).unwrap_err();
        let said = format!("peer speaks protocol {next}, this is ");
        assert!(error.message().contains(&said) && error.message().contains("upgrade executors first"), "{error}");
        assert!(ticket(&of_version("nine")).is_err());
    }
}
