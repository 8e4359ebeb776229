//! What of a bucket or an object a request is about, and which names of its query belong to that. Stores get these names only:
//! one that a store does not know would be answered with something else, such as a listing of all of its bucket.

use http::Method;

use super::Request;
use crate::dialect::{Query, S3Error, S3Result};

/// A sub-resource, which a name in the query asks for. The content itself has no name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubResource {
    pub(crate) name: &'static str,
    kind: Kind,
    methods: &'static [Method],
    /// Other names that say more of it.
    with: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of the bucket, about all of what is in it.
    Configuration,
    /// What is in the bucket, an object, or what stands beside it.
    Content,
}

use Kind::{Configuration, Content};

const GET: &[Method] = &[Method::GET];
const GET_PUT: &[Method] = &[Method::GET, Method::PUT];
const ALL: &[Method] = &[Method::GET, Method::PUT, Method::DELETE];
const NAMED: &[&str] = &["id", "continuation-token"];
const VERSION: &[&str] = &["versionId"];

const fn sub(name: &'static str, kind: Kind, methods: &'static [Method], with: &'static [&'static str]) -> SubResource {
    SubResource { name, kind, methods, with }
}

const OF_BUCKETS: [SubResource; 28] = [
    sub("abac", Configuration, GET_PUT, &[]),
    sub("accelerate", Configuration, GET_PUT, &[]),
    sub("acl", Configuration, GET_PUT, &[]),
    sub("analytics", Configuration, ALL, NAMED),
    sub("cors", Configuration, ALL, &[]),
    sub("delete", Content, &[Method::POST], &[]),
    sub("encryption", Configuration, ALL, &[]),
    sub("intelligent-tiering", Configuration, ALL, NAMED),
    sub("inventory", Configuration, ALL, NAMED),
    sub("lifecycle", Configuration, ALL, &[]),
    sub("location", Content, GET, &[]),
    sub("logging", Configuration, GET_PUT, &[]),
    sub("metadataConfiguration", Configuration, ALL, &[]),
    sub("metadataTable", Configuration, ALL, &[]),
    sub("metrics", Configuration, ALL, NAMED),
    sub("notification", Configuration, GET_PUT, &[]),
    sub("object-lock", Configuration, GET_PUT, &[]),
    sub("ownershipControls", Configuration, ALL, &[]),
    sub("policy", Configuration, ALL, &[]),
    sub("policyStatus", Configuration, GET, &[]),
    sub("publicAccessBlock", Configuration, ALL, &[]),
    sub("replication", Configuration, ALL, &[]),
    sub("requestPayment", Configuration, GET_PUT, &[]),
    sub("tagging", Configuration, ALL, &[]),
    sub("uploads", Content, GET, &["delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker"]),
    sub("versioning", Configuration, GET_PUT, &[]),
    sub("versions", Content, GET, &["delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker"]),
    sub("website", Configuration, ALL, &[]),
];
const OF_OBJECTS: [SubResource; 10] = [
    sub("acl", Content, GET_PUT, VERSION),
    sub("attributes", Content, GET, VERSION),
    sub("legal-hold", Content, GET_PUT, VERSION),
    sub("restore", Content, &[Method::POST], VERSION),
    sub("retention", Content, GET_PUT, VERSION),
    sub("select", Content, &[Method::POST], &["select-type"]),
    sub("tagging", Content, ALL, VERSION),
    sub("torrent", Content, GET, &[]),
    sub(
        "uploadId",
        Content,
        &[Method::GET, Method::PUT, Method::POST, Method::DELETE],
        &["encoding-type", "max-parts", "part-number-marker", "partNumber"],
    ),
    sub("uploads", Content, &[Method::POST], &[]),
];
/// The listing, in both of its versions.
const LISTING: SubResource = sub(
    "",
    Content,
    &[Method::GET, Method::HEAD, Method::PUT, Method::DELETE],
    &[
        "allow-unordered",
        "continuation-token",
        "delimiter",
        "encoding-type",
        "fetch-owner",
        "list-type",
        "marker",
        "max-keys",
        "prefix",
        "start-after",
    ],
);
/// An object's bytes, and a version of them.
const BYTES: SubResource = sub(
    "",
    Content,
    &[Method::GET, Method::HEAD, Method::PUT, Method::DELETE],
    &[
        "partNumber",
        "response-cache-control",
        "response-content-disposition",
        "response-content-encoding",
        "response-content-language",
        "response-content-type",
        "response-expires",
        "versionId",
    ],
);

impl SubResource {
    /// Finds it. A name without a value that is none of a sub-resource is one that is not known here; other unknown names are
    /// ignored, as in S3.
    pub(crate) fn of(request: &Request) -> S3Result<&'static Self> {
        let of_object = request.target.key.is_some();
        let (named, content) = if of_object { (&OF_OBJECTS[..], &BYTES) } else { (&OF_BUCKETS[..], &LISTING) };
        let mut found = named.iter().filter(|sub| request.target.query.has(sub.name));
        let it = found.next().unwrap_or(content);
        if let Some(other) = found.next() {
            return Err(S3Error::not_implemented(&format!("{} together with {}", it.name, other.name)));
        }
        let other = |(name, value): &&(String, String)| value.is_empty() && !it.names(name) && !content.names(name);
        if let Some((name, _)) = request.target.query.of_the_request().find(other) {
            return Err(S3Error::not_implemented(name));
        }
        match it.methods.contains(&request.parts.method) {
            true => Ok(it),
            false if it == content && !of_object && request.parts.method == Method::POST => {
                Err(S3Error::not_implemented("forms"))
            }
            false => Err(S3Error::method_not_allowed()),
        }
    }

    fn names(&self, name: &str) -> bool {
        self.name == name || self.with.contains(&name)
    }

    /// What of a request's query is about this.
    pub(crate) fn query(&self, query: &Query) -> Vec<(String, String)> {
        query.of_the_request().filter(|(name, _)| self.names(name)).cloned().collect()
    }

    pub(crate) fn is_configuration(&self) -> bool {
        self.kind == Configuration
    }

    /// Whether it tells nothing of what others have in the same bucket of a store: the rest is shown to mounts that are all of it.
    pub(crate) fn is_of_parts(&self) -> bool {
        !self.is_configuration() || self.name == "versioning"
    }
}
