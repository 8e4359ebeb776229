//! Errors as statuses of gRPC, each code by what the caller must do, with messages short enough for a header.

use arrow_flight::error::FlightError;
use forebay_types::{Error, ErrorKind};
use tonic::{Code, Status};

/// Messages travel in a header, which clients limit.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// An error as clients see it: by what they must do, with the path and the remedy.
pub(crate) fn status(error: &Error) -> Status {
    let code = match error.kind() {
        ErrorKind::Retry | ErrorKind::Closed => Code::Unavailable,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::Invalid => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Denied => Code::PermissionDenied,
        ErrorKind::Corrupt | ErrorKind::DataLost => Code::DataLoss,
        ErrorKind::Internal => Code::Internal,
    };
    Status::new(code, shortened(error.message()))
}

fn shortened(message: &str) -> String {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let more = if end < message.len() { " ..." } else { "" };
    format!("{}{more}", &message[..end])
}

/// What can't be encoded is a defect of ours.
pub(crate) fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(shortened(&error.to_string()))
}

/// What the library says, or what stood in the way of its stream.
pub(crate) fn refused(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => internal(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        let status = status(&Error::not_found("é".repeat(2_000)));
        assert_eq!(status.code(), Code::NotFound);
        assert!(status.message().len() <= MESSAGE_BYTES_MAX + 4 && status.message().ends_with("é ..."));
    }
}
