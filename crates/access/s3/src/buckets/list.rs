//! Listings, in both versions that S3 has of them.

use std::sync::Arc;

use forebay_types::{Mount, hex};

use super::owner;
use super::page::page;
use crate::answer::{Answer, document};
use crate::context::Context;
use crate::dialect::{PAGE_MAX, Page, PageRequest, S3Error, S3Result, Xml, etag, iso_date, show_key};
use crate::request::Request;
use crate::temporary;

/// What both versions of a listing share.
struct Asked<'a> {
    prefix: &'a str,
    delimiter: Option<&'a str>,
    limit: usize,
    encoded: bool,
}

impl<'a> Asked<'a> {
    fn of(request: &'a Request) -> S3Result<Self> {
        let encoded = match request.query("encoding-type") {
            None | Some("") => false,
            Some("url") => true,
            Some(_) => return Err(S3Error::invalid_argument("Invalid Encoding Method specified in Request")),
        };
        let limit = match request.query("max-keys") {
            None | Some("") => PAGE_MAX,
            Some(text) => match text.parse::<i64>() {
                Ok(limit @ 0..) => usize::try_from(limit).unwrap_or(PAGE_MAX).min(PAGE_MAX),
                Ok(_) => return Err(S3Error::invalid_argument("Argument maxKeys must be an integer between 0 and 2147483647")),
                Err(_) => return Err(S3Error::invalid_argument("Provided max-keys not an integer or within integer range")),
            },
        };
        let delimiter = request.query("delimiter").filter(|delimiter| !delimiter.is_empty());
        Ok(Self { prefix: request.query("prefix").unwrap_or(""), delimiter, limit, encoded })
    }

    async fn page(&self, context: &Context, mount: &Mount, after: Option<String>) -> S3Result<Page> {
        let delimiter = self.delimiter.unwrap_or("");
        let request = PageRequest { mount, prefix: self.prefix, delimiter, after, limit: self.limit };
        if mount.name.is_temporary() { temporary::page(context, request).await } else { page(&context.client, request).await }
    }

    fn begin(&self, mount: &Mount, prefix_encoded: bool) -> Xml {
        let mut xml = Xml::begin("ListBucketResult", true);
        xml.text("Name", mount.name.as_str());
        xml.text("Prefix", &show_key(self.prefix, prefix_encoded));
        xml
    }

    fn rest(&self, xml: &mut Xml, page: &Page, with_owner: bool) {
        if let Some(delimiter) = self.delimiter {
            xml.text("Delimiter", &show_key(delimiter, self.encoded));
        }
        if self.encoded {
            xml.text("EncodingType", "url");
        }
        xml.text("MaxKeys", &self.limit.to_string());
        xml.text("IsTruncated", if page.next.is_some() { "true" } else { "false" });
        for info in &page.objects {
            xml.open("Contents");
            xml.text("Key", &show_key(info.version.key.as_str(), self.encoded));
            xml.text("LastModified", &iso_date(info.modified_ms));
            // Of temporary data it is known once an object is looked at.
            if !info.version.tag.as_str().is_empty() {
                xml.text("ETag", &etag(&info.version.tag));
            }
            xml.text("Size", &info.version.size.to_string());
            if with_owner {
                owner(xml);
            }
            xml.text("StorageClass", "STANDARD");
            xml.close("Contents");
        }
        for folder in &page.folders {
            xml.open("CommonPrefixes");
            xml.text("Prefix", &show_key(folder, self.encoded));
            xml.close("CommonPrefixes");
        }
    }
}

pub(crate) async fn list_v2(context: &Arc<Context>, request: &Request, mount: &Mount) -> S3Result<Answer> {
    let asked = Asked::of(request)?;
    let token = request.query("continuation-token");
    let after = match token.filter(|token| !token.is_empty()) {
        Some(token) => Some(untoken(token)?),
        None => request.query("start-after").filter(|after| !after.is_empty()).map(Into::into),
    };
    let page = asked.page(context, mount, after).await?;
    let mut xml = asked.begin(mount, asked.encoded);
    if let Some(token) = token {
        xml.text("ContinuationToken", token);
    }
    if let Some(next) = &page.next {
        // In letters that any client leaves alone.
        xml.text("NextContinuationToken", &hex(next.as_bytes()));
    }
    if let Some(after) = request.query("start-after") {
        xml.text("StartAfter", &show_key(after, asked.encoded));
    }
    xml.text("KeyCount", &(page.objects.len() + page.folders.len()).to_string());
    asked.rest(&mut xml, &page, request.query("fetch-owner") == Some("true"));
    Ok(document(xml.end("ListBucketResult")))
}

pub(crate) async fn list_v1(context: &Arc<Context>, request: &Request, mount: &Mount) -> S3Result<Answer> {
    let asked = Asked::of(request)?;
    let marker = request.query("marker").unwrap_or("");
    let page = asked.page(context, mount, Some(marker.into()).filter(|_| !marker.is_empty())).await?;
    // As it was given, where XML can carry it: clients that ask for the encoding by themselves do not undo it here.
    let mut xml = asked.begin(mount, asked.encoded && !is_carried(asked.prefix));
    xml.text("Marker", &show_key(marker, asked.encoded));
    // Without a delimiter the last key is where to go on.
    if let Some(next) = page.next.as_ref().filter(|_| asked.delimiter.is_some()) {
        xml.text("NextMarker", &show_key(next, asked.encoded));
    }
    asked.rest(&mut xml, &page, true);
    Ok(document(xml.end("ListBucketResult")))
}

/// Whether XML has all of these characters.
fn is_carried(text: &str) -> bool {
    text.chars().all(|character| {
        matches!(character, '\t' | '\n' | '\r') || (character >= ' ' && !matches!(character, '\u{fffe}' | '\u{ffff}'))
    })
}

/// Reads where a page goes on.
fn untoken(token: &str) -> S3Result<String> {
    let wrong = || S3Error::invalid_argument("The continuation token provided is incorrect");
    if !token.len().is_multiple_of(2) || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let bytes = (0..token.len() / 2).map(|at| u8::from_str_radix(&token[2 * at..2 * at + 2], 16).map_err(|_| wrong()));
    String::from_utf8(bytes.collect::<S3Result<Vec<u8>>>()?).map_err(|_| wrong())
}
