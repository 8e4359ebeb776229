//! The XML that S3 speaks: written by hand, read by element names.

use bytes::Bytes;
use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_xml_entity};
use quick_xml::events::Event;

use crate::error::{S3Error, S3Result};

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document that is being written.
pub(crate) struct Xml(String);

impl Xml {
    pub(crate) fn begin(root: &str, namespace: bool) -> Self {
        let mut xml = Self(String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
        match namespace {
            true => xml.0.push_str(&format!("<{root} xmlns=\"{NAMESPACE}\">")),
            false => xml.open(root),
        }
        xml
    }

    pub(crate) fn open(&mut self, name: &str) {
        self.0.push('<');
        self.0.push_str(name);
        self.0.push('>');
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        for piece in escape(text).split_inclusive(['\r', '\n']) {
            // A reader would make one of both line ends.
            match piece.strip_suffix('\r') {
                Some(rest) => {
                    self.0.push_str(rest);
                    self.0.push_str("&#13;");
                }
                None => self.0.push_str(piece),
            }
        }
        self.close(name);
    }

    /// Text right in the element that is open.
    pub(crate) fn raw_text(&mut self, text: &str) {
        self.0.push_str(&escape(text));
    }

    pub(crate) fn end(mut self, root: &str) -> Bytes {
        self.close(root);
        self.0.into()
    }
}

/// Walks a document: for each element with its names from the root, `begin` at its start and `text` at its end.
pub(crate) trait Visit {
    fn begin(&mut self, path: &[String]) {
        let _ = path;
    }

    fn text(&mut self, path: &[String], text: String) -> S3Result<()>;
}

/// Reads what a client sent. `MalformedXML` when it is none.
pub(crate) fn read(xml: &[u8], visit: &mut impl Visit) -> S3Result<()> {
    let mut reader = Reader::from_reader(xml);
    let (mut path, mut text) = (Vec::<String>::new(), String::new());
    let malformed = |_| S3Error::malformed_xml();
    loop {
        match reader.read_event().map_err(malformed)? {
            Event::Start(start) => {
                if path.len() >= 16 {
                    return Err(S3Error::malformed_xml());
                }
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                text.clear();
                visit.begin(&path);
            }
            Event::Empty(empty) => {
                path.push(String::from_utf8_lossy(empty.local_name().as_ref()).into_owned());
                visit.begin(&path);
                visit.text(&path, String::new())?;
                path.pop();
            }
            Event::End(_) => {
                visit.text(&path, std::mem::take(&mut text))?;
                path.pop();
            }
            Event::Text(piece) => text.push_str(&piece.decode().map_err(|_| S3Error::malformed_xml())?),
            Event::CData(piece) => text.push_str(&piece.decode().map_err(|_| S3Error::malformed_xml())?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(malformed)? {
                Some(character) => text.push(character),
                None => {
                    let name = reference.decode().map_err(|_| S3Error::malformed_xml())?;
                    text.push_str(resolve_xml_entity(&name).ok_or_else(S3Error::malformed_xml)?);
                }
            },
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err(S3Error::malformed_xml()),
            _ => {}
        }
    }
}

/// Writes a store's document again with other texts in some of its elements, each given with its names from the root. None when
/// it can't be read.
pub(crate) fn rewrite(xml: &[u8], change: impl Fn(&[String], String) -> String) -> Option<Bytes> {
    struct Copy<'a, F> {
        out: String,
        depth: usize,
        leaf: bool,
        change: &'a F,
    }
    impl<F: Fn(&[String], String) -> String> Visit for Copy<'_, F> {
        fn begin(&mut self, path: &[String]) {
            let name = &path[path.len() - 1];
            match path.len() {
                1 if name != "Error" => self.out.push_str(&format!("<{name} xmlns=\"{NAMESPACE}\">")),
                _ => self.out.push_str(&format!("<{name}>")),
            }
            self.depth = path.len();
            self.leaf = true;
        }

        fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
            let name = &path[path.len() - 1];
            if self.leaf && path.len() == self.depth {
                let changed = (self.change)(path, text);
                self.out.push_str(&escape(&changed));
            }
            self.leaf = false;
            self.out.push_str(&format!("</{name}>"));
            Ok(())
        }
    }
    let out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut copy = Copy { out, depth: 0, leaf: false, change: &change };
    match read(xml, &mut copy) {
        Ok(()) if copy.depth > 0 => Some(copy.out.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_s_document_is_written_with_other_names() {
        let xml = Bytes::from_static(
            b"<?xml version=\"1.0\"?>\n<R xmlns=\"x\">\n <Bucket>b</Bucket><U><Key>p/a&amp;b</Key><E/></U></R>",
        );
        let out = rewrite(&xml, |path, text| match path[path.len() - 1].as_str() {
            "Bucket" => "lake".into(),
            "Key" => text.trim_start_matches("p/").into(),
            _ => text,
        })
        .unwrap();
        let text = String::from_utf8(out.to_vec()).unwrap();
        assert!(text.ends_with("<Bucket>lake</Bucket><U><Key>a&amp;b</Key><E></E></U></R>"), "{text}");
        assert_eq!(rewrite(b"<R><A></R>", |_, text| text), None);
    }
}
