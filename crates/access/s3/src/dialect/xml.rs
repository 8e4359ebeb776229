//! The XML that S3 speaks, written by hand.

use bytes::Bytes;
use quick_xml::escape::escape;

pub(super) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// Writes a text so that whoever reads it has the same one: `\r`, of which a reader would make `\n`, and what XML has no characters for
/// go by their numbers, as S3 sends them.
pub(super) fn write_text(out: &mut String, text: &str) {
    let by_number = |character: char| character < ' ' && !matches!(character, '\t' | '\n');
    for piece in escape(text).split_inclusive(by_number) {
        match piece.chars().next_back().filter(|last| by_number(*last)) {
            Some(last) => {
                out.push_str(&piece[..piece.len() - last.len_utf8()]);
                out.push_str(&format!("&#{};", u32::from(last)));
            }
            None => out.push_str(piece),
        }
    }
}

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
        write_text(&mut self.0, text);
        self.close(name);
    }

    /// Text right in the element that is open.
    pub(crate) fn raw_text(&mut self, text: &str) {
        write_text(&mut self.0, text);
    }

    pub(crate) fn end(mut self, root: &str) -> Bytes {
        self.close(root);
        self.0.into()
    }
}
