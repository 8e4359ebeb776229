//! The XML that S3 speaks, read by the names of its elements.

use bytes::Bytes;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

use super::error::{S3Error, S3Result};
use super::xml::{NAMESPACE, write_text};

/// Walks a document: for each element with its names from the root, `begin` at its start and `text` at its end.
pub(crate) trait Visit {
    fn begin(&mut self, path: &[String]) {
        let _ = path;
    }

    fn text(&mut self, path: &[String], text: String) -> S3Result<()>;
}

/// Reads what a client sent. `MalformedXML` when it is none.
pub(crate) fn read_xml(xml: &[u8], visit: &mut impl Visit) -> S3Result<()> {
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
pub(crate) fn rewrite_xml(xml: &[u8], change: impl Fn(&[String], String) -> String) -> Option<Bytes> {
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
                write_text(&mut self.out, &(self.change)(path, text));
            }
            self.leaf = false;
            self.out.push_str(&format!("</{name}>"));
            Ok(())
        }
    }
    let out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut copy = Copy { out, depth: 0, leaf: false, change: &change };
    match read_xml(xml, &mut copy) {
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
        let out = rewrite_xml(&xml, |path, text| match path[path.len() - 1].as_str() {
            "Bucket" => "lake".into(),
            "Key" => text.trim_start_matches("p/").into(),
            _ => text,
        })
        .unwrap();
        let text = String::from_utf8(out.to_vec()).unwrap();
        assert!(text.ends_with("<Bucket>lake</Bucket><U><Key>a&amp;b</Key><E></E></U></R>"), "{text}");
        assert_eq!(rewrite_xml(b"<R><A></R>", |_, text| text), None);
    }

    #[test]
    fn whoever_reads_what_is_written_again_has_the_same_text() {
        let xml = b"<R><Key>a&#13;b\nc&#13;&#10;\td&#x1;&amp;&#27;</Key></R>";
        let out = rewrite_xml(xml, |_, text| text).unwrap();
        let text = String::from_utf8(out.to_vec()).unwrap();
        assert!(text.ends_with("<Key>a&#13;b\nc&#13;\n\td&#1;&amp;&#27;</Key></R>"), "{text}");
        let read = std::cell::RefCell::new(String::new());
        rewrite_xml(&out, |_, text| read.replace(text)).unwrap();
        assert_eq!(read.into_inner(), "a\rb\nc\r\n\td\u{1}&\u{1b}");
    }
}
