//! Many values with few calls.

use std::collections::BTreeMap;

use bytes::Bytes;
use forebay_nodes::{NodeError, NodeErrorKind, NodeResult, split};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NODE_VALUES_BYTES_MAX, NodeOp, NodeReply, Raw};
use futures::StreamExt;

use super::Nodes;
use super::call::misfit;

/// Values of one message.
const VALUES_MAX: usize = 1000;
/// Values that are asked for by themselves, for their size, at a time.
const LARGE_AHEAD: usize = 8;
/// Containers that are asked at a time.
const CONTAINERS_AHEAD: usize = 8;

/// Places of paths and their last names, by the container that they are in.
type Groups<'p> = BTreeMap<&'p str, Vec<(usize, &'p str)>>;

impl Nodes {
    /// Values of several key-values of one container, in the order of their names: small ones in one round trip for a thousand,
    /// or for 1 MiB of them.
    pub async fn get_many(&self, container: &str, names: &[&str]) -> NodeResult<Vec<NodeResult<Bytes>>> {
        let mut values: Vec<NodeResult<Bytes>> = vec![Err(misfit()); names.len()];
        let (mut next, mut large): (Vec<usize>, Vec<usize>) = ((0..names.len()).rev().collect(), Vec::new());
        while !next.is_empty() {
            let asked: Vec<usize> = next.drain(next.len().saturating_sub(VALUES_MAX)..).rev().collect();
            let op = NodeOp::GetMany { names: asked.iter().map(|at| names[*at]).collect() };
            let answer = self.call(container, &op).await?;
            let NodeReply::Values(found) = answer.reply()? else { return Err(misfit()) };
            if found.len() != asked.len() {
                return Err(misfit());
            }
            // The first one of a message always has room, so that each message brings something.
            let mut left = NODE_VALUES_BYTES_MAX;
            for (value, at) in found.into_iter().zip(asked) {
                match value {
                    Ok(Some(Raw(value))) => {
                        left = left.saturating_sub(value.len());
                        values[at] = Ok(answer.meta.slice_ref(value));
                    }
                    Ok(None) if left >= NODE_MESSAGE_VALUE_MAX => large.push(at),
                    Ok(None) => next.push(at),
                    Err(error) => values[at] = Err(error.context(container)),
                }
            }
        }
        let mut asked = Vec::with_capacity(large.len());
        for at in large {
            asked.push(async move { (at, self.get(&format!("{container}/{}", names[at])).await) });
        }
        let mut asked = std::pin::pin!(futures::stream::iter(asked).buffer_unordered(LARGE_AHEAD));
        while let Some((at, value)) = asked.next().await {
            values[at] = value;
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
                value.len() <= NODE_MESSAGE_VALUE_MAX && bytes <= NODE_VALUES_BYTES_MAX
            });
            let values: Vec<_> = small.map(|(name, value)| (*name, Raw(&value[..]))).collect();
            let count = values.len();
            assert!(count > 0, "the first of the rest has room in a message");
            let answer = self.call(container, &NodeOp::PutMany { values }).await?;
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

    /// Values of key-values anywhere, in the order of their paths, as [`Self::get_many`] gets those of each container. What can't
    /// be asked of a container is the error of each path in it.
    pub async fn get_each(&self, paths: &[&str]) -> Vec<NodeResult<Bytes>> {
        let (groups, mut answers) = by_container(paths.iter().copied());
        let mut asked = Vec::with_capacity(groups.len());
        for (container, group) in groups {
            asked.push(async move {
                let names: Vec<&str> = group.iter().map(|(_, name)| *name).collect();
                let got = self.get_many(container, &names).await;
                (group, got)
            });
        }
        let mut asked = std::pin::pin!(futures::stream::iter(asked).buffer_unordered(CONTAINERS_AHEAD));
        while let Some((group, got)) = asked.next().await {
            spread(&mut answers, group, got);
        }
        answers
    }

    /// Puts values anywhere, each by itself, as [`Self::put_many`] puts those of each container. The answers are in the order of
    /// the values; of those of one path the last stays.
    pub async fn put_each(&self, values: &[(&str, Bytes)]) -> Vec<NodeResult<()>> {
        let (groups, mut answers) = by_container(values.iter().map(|(path, _)| *path));
        let mut asked = Vec::with_capacity(groups.len());
        for (container, group) in groups {
            asked.push(async move {
                let values: Vec<(&str, Bytes)> = group.iter().map(|(at, name)| (*name, values[*at].1.clone())).collect();
                let put = self.put_many(container, &values).await;
                (group, put)
            });
        }
        let mut asked = std::pin::pin!(futures::stream::iter(asked).buffer_unordered(CONTAINERS_AHEAD));
        while let Some((group, put)) = asked.next().await {
            spread(&mut answers, group, put);
        }
        answers
    }
}

/// Sorts paths by their containers. With them come the answers of all, which are those of paths that no value can have until
/// the containers answer.
fn by_container<'p, T>(paths: impl Iterator<Item = &'p str>) -> (Groups<'p>, Vec<NodeResult<T>>) {
    let (mut groups, mut answers) = (Groups::new(), Vec::new());
    for (at, path) in paths.enumerate() {
        answers.push(Err(match (split(path), path.rsplit_once('/')) {
            (Err(error), _) => error,
            (Ok(inside), Some((container, name))) if !inside.is_empty() => {
                groups.entry(container).or_default().push((at, name));
                misfit()
            }
            (Ok(_), _) => NodeError::new(NodeErrorKind::WrongType, format!("{path} is a directory, not a key-value")),
        }));
    }
    (groups, answers)
}

/// Puts the answers of a container in their places.
fn spread<T>(answers: &mut [NodeResult<T>], group: Vec<(usize, &str)>, of_container: NodeResult<Vec<NodeResult<T>>>) {
    match of_container {
        Ok(found) => group.into_iter().zip(found).for_each(|((at, _), answer)| answers[at] = answer),
        Err(error) => group.into_iter().for_each(|(at, _)| answers[at] = Err(error.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_asked_by_their_containers() {
        let paths = ["/tmp/a", "/tmp/t/b", "/lake/x", "/tmp", "/tmp/t/a", "/tmp//c", "/tmp/t/b"];
        let (groups, answers) = by_container::<()>(paths.into_iter());
        let groups: Vec<_> = groups.into_iter().collect();
        assert_eq!(groups, [("/tmp", vec![(0, "a")]), ("/tmp/t", vec![(1, "b"), (4, "a"), (6, "b")])]);
        let kinds: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_err().kind).collect();
        let (open, invalid) = (NodeErrorKind::Retry, NodeErrorKind::Invalid);
        assert_eq!(kinds, [open, open, invalid, NodeErrorKind::WrongType, open, invalid, open]);
    }

    #[test]
    fn what_a_container_refuses_is_the_error_of_all_in_it() {
        let mut answers = vec![Ok(1), Ok(2), Ok(3)];
        let lost = NodeError::new(NodeErrorKind::DataLost, "gone");
        spread(&mut answers, vec![(0, "a"), (2, "b")], Err(lost.clone()));
        spread(&mut answers, vec![(1, "c")], Ok(vec![Ok(7)]));
        assert_eq!(answers, [Err(lost.clone()), Ok(7), Err(lost)]);
    }
}
