//! How commands reach the coordinator, and what they say when none answers.

use forebay_client::{Client, ClientSettings};
use forebay_types::{Error, ErrorKind, Result};

use crate::config::Config;

/// A client of the cluster that the configuration names.
pub(crate) async fn connect(config: &Config) -> Result<Client> {
    let settings = ClientSettings {
        security: config.security.clone(),
        in_place: config.settings.in_place,
        ..ClientSettings::new(config.coordinator())
    };
    Client::connect(settings).await.map_err(|error| match error.kind() {
        ErrorKind::Retry | ErrorKind::Closed | ErrorKind::NotFound => {
            tracing::info!(%error, "no connection");
            let address = &config.settings.coordinator.0;
            Error::new(
                error.kind(),
                format!(
                    "no coordinator answers at {address}: start one with `forebay up`, or name a running one with --coordinator"
                ),
            )
        }
        _ => error,
    })
}
