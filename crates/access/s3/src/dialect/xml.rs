//! The XML that S3 speaks, written by hand.

use bytes::Bytes;
use quick_xml::escape::escape;

pub(super) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

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
