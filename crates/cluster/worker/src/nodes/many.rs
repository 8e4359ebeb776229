//! Many values in one call.

use forebay_nodes::{Got, INLINE_BYTES_MAX, NodeError, NodeErrorKind, NodeResult, Value};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NODE_VALUES_BYTES_MAX, NodeReply, Raw};
use forebay_transport::Response;

use super::Nodes;
use super::fence::{Answer, Reached};
use super::values::reply;

/// Values of one call at most.
const VALUES_MAX: usize = 10_000;

impl Nodes {
    /// Values of several key-values of a container, as they are at one moment.
    pub(super) fn get_many(&self, at: Reached, wanted: &[&str]) -> NodeResult<Response> {
        check_count(wanted.len())?;
        let names = self.reached(at)?;
        names.kind(at.dir)?;
        let mut left = NODE_VALUES_BYTES_MAX;
        let values = wanted.iter().map(|name| {
            Ok(match names.get(at.dir, name)? {
                Got::Inline(bytes) if bytes.len() <= NODE_MESSAGE_VALUE_MAX.min(left) => {
                    left -= bytes.len();
                    Some(Raw(bytes))
                }
                Got::Inline(_) | Got::Blocks(_) => None,
            })
        });
        Ok(reply(&NodeReply::Values(values.collect())))
    }

    /// Puts several values into a container, each by itself.
    pub(super) fn put_many(&self, at: Reached, values: &[(&str, Raw<'_>)]) -> NodeResult<Response> {
        check_count(values.len())?;
        let mut refused = Vec::new();
        let freed = {
            let mut names = self.changing(at)?;
            for (place, (name, value)) in values.iter().enumerate() {
                let put = match value.0.len() <= INLINE_BYTES_MAX {
                    true => names.put(at.dir, name, Value::Inline(value.0.into())).map(drop),
                    false => {
                        Err(NodeError::new(NodeErrorKind::Invalid, "the value is too long to be one of many: put it by itself"))
                    }
                };
                if let Err(error) = put {
                    // Of the container, so that nothing of all was put.
                    if error.kind == NodeErrorKind::Moving {
                        return Err(error);
                    }
                    refused.push((place as u32, error));
                }
            }
            let answer = if refused.is_empty() { Answer::AllPut } else { Answer::SomePut };
            self.took_effect(&names, at, answer);
            names.take_freed()
        };
        self.free_later(freed);
        Ok(reply(&NodeReply::Refused(refused)))
    }
}

fn check_count(count: usize) -> NodeResult<()> {
    match count <= VALUES_MAX {
        true => Ok(()),
        false => Err(NodeError::new(NodeErrorKind::Invalid, format!("{count} values at once are more than {VALUES_MAX}"))),
    }
}
