//! The few answers of S3 that are XML, read by element names, byte for byte.

use forebay_types::{Error, Result};
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

/// Calls `seen` with the names from the root to each element that holds text, and the text, unescaped and untrimmed;
/// and with an empty text at the end of each element.
fn walk(xml: &[u8], mut seen: impl FnMut(&[String], &str)) -> Result<(), quick_xml::Error> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().trim_text(false);
    let (mut path, mut text) = (Vec::new(), String::new());
    loop {
        match reader.read_event()? {
            Event::Start(start) => {
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                text.clear();
            }
            Event::End(_) => {
                seen(&path, &text);
                path.pop();
                text.clear();
            }
            Event::Text(piece) => text.push_str(&piece.decode()?),
            Event::CData(piece) => text.push_str(&piece.decode()?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref()? {
                Some(character) => text.push(character),
                None => text.push_str(resolve_xml_entity(&reference.decode()?).unwrap_or_default()),
            },
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// What an `<Error>` says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) region: Option<String>,
}

impl Refusal {
    /// Takes what is there: proxies answer with anything.
    pub(super) fn parse(xml: &[u8]) -> Self {
        let mut refusal = Self::default();
        // What came before a defect counts.
        let _ = walk(xml, |path, text| match path {
            [root, name] if root == "Error" => match name.as_str() {
                "Code" => refusal.code = Some(text.into()),
                "Message" => refusal.message = Some(text.into()),
                "Region" => refusal.region = Some(text.into()),
                _ => {}
            },
            _ => {}
        });
        refusal
    }
}

/// A page of a listing, as the server sent it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<Listed>,
    pub(super) folders: Vec<String>,
    pub(super) truncated: bool,
    pub(super) token: Option<String>,
    /// Whether keys are percent-encoded.
    pub(super) encoded: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) key: String,
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    pub(super) modified: String,
}

impl Page {
    pub(super) fn parse(xml: &[u8]) -> Result<Self> {
        let (mut page, mut object) = (Self::default(), Listed::default());
        let (mut is_listing, mut bad_size) = (false, false);
        let walked = walk(xml, |path, text| {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match names[..] {
                ["ListBucketResult"] => is_listing = true,
                ["ListBucketResult", "Contents"] => page.objects.push(std::mem::take(&mut object)),
                ["ListBucketResult", "Contents", "Key"] => object.key = text.into(),
                ["ListBucketResult", "Contents", "Size"] => match text.trim().parse() {
                    Ok(size) => object.size = size,
                    Err(_) => bad_size = true,
                },
                ["ListBucketResult", "Contents", "ETag"] if !text.is_empty() => object.etag = Some(text.into()),
                ["ListBucketResult", "Contents", "LastModified"] => object.modified = text.trim().into(),
                ["ListBucketResult", "CommonPrefixes", "Prefix"] => page.folders.push(text.into()),
                ["ListBucketResult", "IsTruncated"] => page.truncated = text.trim() == "true",
                ["ListBucketResult", "NextContinuationToken"] if !text.is_empty() => page.token = Some(text.into()),
                ["ListBucketResult", "EncodingType"] => page.encoded = text.trim() == "url",
                _ => {}
            }
        });
        match walked {
            Ok(()) if is_listing && !bad_size => Ok(page),
            Ok(()) => Err(Error::internal("the server's listing is none: is the endpoint an S3 service?")),
            Err(error) => Err(Error::internal(format!("the server's listing can't be read: {error}"))),
        }
    }
}

/// The text of the first element of that name right below the root.
pub(super) fn field(xml: &[u8], name: &str) -> Option<String> {
    let mut found = None;
    let _ = walk(xml, |path, text| {
        if let [_, field] = path
            && field == name
            && found.is_none()
        {
            found = Some(text.to_string());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_to_the_byte() {
        let xml = br#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>
            <Contents><Key> a&#x26;b &lt;</Key><LastModified>2024-01-02T03:04:05.000Z</LastModified>
            <ETag>&quot;x&quot;</ETag><Size>7</Size><Owner><ID>me</ID></Owner></Contents>
            <CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></ListBucketResult>"#;
        let page = Page::parse(xml).unwrap();
        assert_eq!((page.truncated, page.token.as_deref(), page.encoded), (true, Some("a&b"), false));
        assert_eq!(page.folders, ["c/"]);
        let [object] = &page.objects[..] else { panic!("{page:?}") };
        assert_eq!((object.key.as_str(), object.size, object.etag.as_deref()), (" a&b <", 7, Some("\"x\"")));
    }

    #[test]
    fn refusals_are_read_as_far_as_they_go() {
        let refusal = Refusal::parse(b"<Error><Code>SlowDown</Code><Message>Slow &gt; down</Message><Mess");
        assert_eq!((refusal.code.as_deref(), refusal.message.as_deref()), (Some("SlowDown"), Some("Slow > down")));
        assert_eq!(Refusal::parse(b"<html>Bad Gateway</html>"), Refusal::default());
        assert!(Page::parse(b"<html></html>").is_err());
    }
}
