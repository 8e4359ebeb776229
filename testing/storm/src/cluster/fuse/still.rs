//! Some files below a root that never change.

use bytes::Bytes;
use rustix::io::Errno;

use super::question::{About, Answers, GETATTR, IS_FILE, IS_FOLDER, LOOKUP, OPEN, Question, READ, READDIR, ROOT, listed, opened};

const FIRST: u64 = ROOT + 1;

/// Files by their names.
pub(super) struct Still(pub(super) Vec<(String, Bytes)>);

impl Still {
    fn file(&self, node: u64) -> Result<&Bytes, Errno> {
        let place = node.checked_sub(FIRST).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.0.get(place)).map(|(_, bytes)| bytes).ok_or(Errno::NOENT)
    }

    fn about(&self, node: u64) -> Result<About, Errno> {
        Ok(match node {
            ROOT => About { node, bytes: 0, mode: IS_FOLDER | 0o555 },
            file => About { node, bytes: self.file(file)?.len() as u64, mode: IS_FILE | 0o444 },
        })
    }
}

impl Answers for Still {
    fn answer(&mut self, question: &Question<'_>) -> Result<Vec<u8>, Errno> {
        match question.kind {
            LOOKUP => {
                let name = question.name(0)?;
                let place = self.0.iter().position(|(known, _)| known.as_bytes() == name).ok_or(Errno::NOENT)?;
                Ok(self.about(FIRST + place as u64)?.found())
            }
            GETATTR => Ok(self.about(question.node)?.told()),
            OPEN => Ok(opened(true)),
            READ => {
                let (file, (from, most)) = (self.file(question.node)?, question.wanted()?);
                let from = usize::try_from(from).map_or(file.len(), |from| from.min(file.len()));
                Ok(file[from..file.len().min(from + most)].to_vec())
            }
            READDIR => {
                let entries = self.0.iter().zip(FIRST..).map(|((name, _), node)| (name.as_bytes(), node, IS_FILE));
                Ok(listed(entries, question.wanted()?))
            }
            _ => Err(Errno::NOSYS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::tests::{ask, node_of};
    use super::super::question::{halves, words};
    use super::*;

    #[test]
    fn files_are_found_read_and_listed() {
        let files = [("a", &b"first"[..]), ("b", b"second one")];
        let mut still = Still(files.map(|(name, bytes)| (name.to_owned(), Bytes::from_static(bytes))).to_vec());
        let (error, found) = ask(&mut still, LOOKUP, ROOT, b"b\0").unwrap();
        assert_eq!((error, node_of(&found)), (0, 3));
        assert_eq!(ask(&mut still, LOOKUP, ROOT, b"c\0").unwrap().0, -Errno::NOENT.raw_os_error());
        let from_to = |from: u64, most: u32| [words(&[0, from]), halves(&[most, 0])].concat();
        assert_eq!(ask(&mut still, READ, 3, &from_to(7, 100)).unwrap(), (0, b"one".to_vec()));
        assert_eq!(ask(&mut still, READ, 3, &from_to(100, 100)).unwrap(), (0, Vec::new()), "behind its end");
        let (_, names) = ask(&mut still, READDIR, ROOT, &from_to(0, 4096)).unwrap();
        assert_eq!((names.len(), names[24], names[32 + 24]), (64, b'a', b'b'));
        assert_eq!(ask(&mut still, READDIR, ROOT, &from_to(1, 40)).unwrap().1[..], names[32..]);
        assert!(ask(&mut still, READDIR, ROOT, &from_to(2, 4096)).unwrap().1.is_empty());
    }
}
