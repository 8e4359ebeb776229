//! S3's words: what requests say and how answers say it. Texts in, texts out: nothing here knows who asks, or what there is.

mod conditions;
mod error;
mod page;
mod range;
mod read_xml;
mod shown;
mod target;
mod xml;

pub(crate) use conditions::{Times, check_conditions, check_source, may_be_known, range_counts};
pub(crate) use error::{S3Error, S3Result};
pub(crate) use page::{PAGE_MAX, Page, PageRequest};
pub(crate) use range::{parse_range, resolve_range};
pub(crate) use read_xml::{Visit, read_xml, rewrite_xml};
pub(crate) use shown::{etag, header_value, http_date, iso_date, show_key, version_shown};
pub(crate) use target::{Query, Target, bucket_in_host, key_of};
pub(crate) use xml::Xml;
