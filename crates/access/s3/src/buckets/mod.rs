//! Buckets: which there are, what is in them, and deleting many objects of one.

mod delete;
mod list;
mod make;
mod page;

use forebay_types::MountName;
use http::header::HeaderName;
use http::{HeaderValue, StatusCode};

use crate::answer::{Answer, document, plain};
use crate::auth::Right;
use crate::context::Context;
use crate::dialect::{Xml, iso_date};
use crate::request::Request;

pub(crate) use delete::delete_many;
pub(crate) use list::{list_v1, list_v2};
pub(crate) use make::{create, remove};

/// All mounts that the caller sees.
pub(crate) fn list(context: &Context, request: &Request) -> Answer {
    let mut xml = Xml::begin("ListAllMyBucketsResult", true);
    owner(&mut xml);
    xml.open("Buckets");
    let view = context.client.view();
    let temporary = (!view.workers.is_empty()).then(MountName::temporary);
    let mut names: Vec<&MountName> = view.mounts.iter().map(|mount| &mount.name).chain(&temporary).collect();
    names.sort();
    for name in names.into_iter().filter(|name| request.caller.may(name.as_str(), Right::Read)) {
        xml.open("Bucket");
        xml.text("Name", name.as_str());
        // Mounts don't know when they were made; clients want some time, and one that could be true.
        xml.text("CreationDate", &iso_date(context.begun_ms));
        xml.close("Bucket");
    }
    xml.close("Buckets");
    document(xml.end("ListAllMyBucketsResult"))
}

pub(crate) fn owner(xml: &mut Xml) {
    xml.open("Owner");
    xml.text("ID", "forebay");
    xml.text("DisplayName", "forebay");
    xml.close("Owner");
}

pub(crate) fn head(context: &Context) -> Answer {
    let mut answer = plain(StatusCode::OK);
    if let Ok(region) = HeaderValue::from_str(&context.settings.region) {
        answer.headers_mut().insert(HeaderName::from_static("x-amz-bucket-region"), region);
    }
    answer
}

pub(crate) fn location(context: &Context) -> Answer {
    let mut xml = Xml::begin("LocationConstraint", true);
    let region = context.settings.region.as_str();
    if region != "us-east-1" {
        xml.raw_text(region);
    }
    document(xml.end("LocationConstraint"))
}

/// What stands for the configuration of versions where objects have one: nobody has ever switched more of them on.
pub(crate) fn not_versioned() -> Answer {
    document(Xml::begin("VersioningConfiguration", true).end("VersioningConfiguration"))
}
