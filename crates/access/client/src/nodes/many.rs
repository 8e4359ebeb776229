//! Many values with few calls.

use bytes::Bytes;
use forebay_nodes::NodeResult;
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NodeOp, NodeReply, Raw};

use super::Nodes;
use super::call::misfit;

/// Values of one message, and their bytes.
const VALUES_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 20;

impl Nodes {
    /// Values of several key-values of one container, in the order of their names: small ones in one round trip for a thousand.
    pub async fn get_many(&self, container: &str, names: &[&str]) -> NodeResult<Vec<NodeResult<Bytes>>> {
        let mut values = Vec::with_capacity(names.len());
        for names in names.chunks(VALUES_MAX) {
            let answer = self.call(container, &NodeOp::GetMany { names: names.to_vec() }, None).await?;
            let NodeReply::Values(found) = answer.reply()? else { return Err(misfit()) };
            if found.len() != names.len() {
                return Err(misfit());
            }
            for (value, name) in found.into_iter().zip(names) {
                values.push(match value {
                    Ok(Some(Raw(value))) => Ok(answer.meta.slice_ref(value)),
                    Ok(None) => self.get(&format!("{container}/{name}")).await,
                    Err(error) => Err(error.context(container)),
                });
            }
        }
        Ok(values)
    }

    /// Puts several values into one container, each by itself: small ones in one round trip for a thousand. The answers are in
    /// the order of the values.
    pub async fn put_many(&self, container: &str, values: &[(&str, Bytes)]) -> NodeResult<Vec<NodeResult<()>>> {
        let mut answers = Vec::with_capacity(values.len());
        let mut rest = values;
        while let Some((name, value)) = rest.first() {
            if value.len() > NODE_MESSAGE_VALUE_MAX {
                answers.push(self.put(&format!("{container}/{name}"), value.clone()).await);
                rest = &rest[1..];
                continue;
            }
            let mut bytes = 0;
            let small = rest.iter().take(VALUES_MAX).take_while(|(_, value)| {
                bytes += value.len();
                value.len() <= NODE_MESSAGE_VALUE_MAX && bytes <= BYTES_MAX
            });
            let values: Vec<_> = small.map(|(name, value)| (*name, Raw(&value[..]))).collect();
            let count = values.len();
            let answer = self.call(container, &NodeOp::PutMany { values }, None).await?;
            let NodeReply::Refused(refused) = answer.reply()? else { return Err(misfit()) };
            let first = answers.len();
            answers.resize(first + count, Ok(()));
            for (at, error) in refused {
                *answers.get_mut(first + at as usize).ok_or_else(misfit)? = Err(error.context(container));
            }
            rest = &rest[count..];
        }
        Ok(answers)
    }
}
