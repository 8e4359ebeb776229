//! Errors of the databases, by what the caller must do.

use forebay_types::{Error, ErrorKind};

use crate::location::Location;

impl Location {
    /// Sorts a database's error by what the caller must do, and names the database.
    pub(crate) fn fault(&self, error: sqlx::Error) -> Error {
        let shown = self.shown();
        let (kind, message) = match &error {
            sqlx::Error::Database(fault) => {
                let (kind, remedy) = self.dialect().classify(&fault.code().unwrap_or_default());
                (kind, format!("metadata database {shown}: {}{remedy}", fault.message()))
            }
            sqlx::Error::Io(fault) => (
                ErrorKind::Retry,
                format!("metadata database {shown} can't be reached: {fault}: is it running, and is the address right?"),
            ),
            sqlx::Error::PoolTimedOut => (
                ErrorKind::Retry,
                format!("metadata database {shown} can't be reached: no connection within 5 s: is it running?"),
            ),
            sqlx::Error::Tls(fault) => (
                ErrorKind::Retry,
                format!(
                    "metadata database {shown}: TLS failed: {fault}: set sslmode and sslrootcert in the URL as the server has it"
                ),
            ),
            sqlx::Error::Protocol(fault) => {
                (ErrorKind::Retry, format!("metadata database {shown}: connection broke: {fault}: try again"))
            }
            sqlx::Error::PoolClosed => (ErrorKind::Closed, format!("metadata database {shown} was closed")),
            sqlx::Error::WorkerCrashed => (ErrorKind::Closed, format!("metadata database {shown}: its thread ended")),
            sqlx::Error::Configuration(fault) => {
                (ErrorKind::Invalid, format!("metadata database {shown}: bad setting in its URL: {fault}"))
            }
            other => (ErrorKind::Internal, format!("metadata database {shown}: {other}")),
        };
        Error::new(kind, message).with_source(error)
    }
}
