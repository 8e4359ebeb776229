//! Operations as lines of JSON.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use forebay_nodes::{CreateOptions, NodeError, NodeErrorKind, NodeResult, StorageClass};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{NodePlace, Nodes};

/// One operation, as a line of JSON has it.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Operation {
    Create {
        path: String,
        #[serde(rename = "type")]
        kind: String,
        #[serde(default = "yes")]
        enumerable: bool,
        storage_class: Option<String>,
        location: Option<String>,
    },
    Stat {
        path: String,
    },
    List {
        path: String,
    },
    Put {
        path: String,
        data: Data,
        storage_class: Option<String>,
        location: Option<String>,
    },
    Get {
        path: String,
    },
    Append {
        path: String,
        data: Data,
        storage_class: Option<String>,
        location: Option<String>,
    },
    Write {
        path: String,
        offset: u64,
        data: Data,
    },
    Read {
        path: String,
        offset: u64,
        bytes: u64,
    },
    Rename {
        path: String,
        to: String,
    },
    Delete {
        path: String,
        #[serde(default)]
        recursive: bool,
    },
    Bag {
        path: String,
    },
    Quota {
        path: String,
        /// Named also to lift it, by null.
        #[serde(deserialize_with = "Option::deserialize")]
        bytes: Option<u64>,
    },
    Usage {
        path: String,
    },
    Sleep {
        ms: u64,
    },
}

/// Bytes: as text, or in Base64.
#[derive(Deserialize)]
#[serde(untagged)]
enum Data {
    Text(String),
    Encoded { base64: String },
}

/// Where a node is to lie, as words say it.
fn place(class: Option<&str>, location: Option<&str>) -> NodeResult<NodePlace> {
    Ok(NodePlace { class: class.map(str::parse).transpose()?, location: location.map(str::parse).transpose()? })
}

fn yes() -> bool {
    true
}

impl Data {
    fn into_bytes(self) -> NodeResult<Bytes> {
        match self {
            Self::Text(text) => Ok(text.into()),
            Self::Encoded { base64 } => match STANDARD.decode(base64) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(NodeError::new(NodeErrorKind::Invalid, format!("data is no Base64: {error}"))),
            },
        }
    }
}

/// Bytes as an answer has them.
fn data(bytes: &[u8]) -> Value {
    if let Ok(text) = std::str::from_utf8(bytes) { json!(text) } else { json!({ "base64": STANDARD.encode(bytes) }) }
}

impl Nodes {
    /// Does one operation of JSON, as `forebay node batch` reads them, and gives its answer: `{"ok": ..}` or
    /// `{"error": KIND, "message": ..}`.
    pub async fn answer_json(&self, line: &[u8]) -> Value {
        let answered = match serde_json::from_slice(line) {
            Ok(operation) => self.operate(operation).await,
            Err(error) => Err(NodeError::new(NodeErrorKind::Invalid, format!("no operation: {error}"))),
        };
        match answered {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => json!({ "error": error.kind.as_str(), "message": error.message }),
        }
    }

    async fn operate(&self, operation: Operation) -> NodeResult<Value> {
        Ok(match operation {
            Operation::Create { path, kind, enumerable, storage_class, location } => {
                let kind = kind.parse()?;
                let NodePlace { class, location } = place(storage_class.as_deref(), location.as_deref())?;
                self.create(&path, CreateOptions { kind, enumerable, class, location }).await?;
                json!({ "type": kind.as_str() })
            }
            Operation::Stat { path } => match self.stat(&path).await? {
                Some(stat) => {
                    let mut shown = json!({ "type": stat.kind.as_str(), "bytes": stat.bytes });
                    if stat.class != StorageClass::default() {
                        shown["storage_class"] = stat.class.as_str().into();
                    }
                    if !stat.location.is_anywhere() {
                        shown["location"] = stat.location.as_str().into();
                    }
                    shown
                }
                None => Value::Null,
            },
            Operation::List { path } => {
                let (mut names, mut after) = (Vec::new(), None::<String>);
                loop {
                    let (page, last) = self.list(&path, after.as_deref(), u32::MAX).await?;
                    after = page.last().map(|entry| entry.name.clone());
                    names.extend(page.into_iter().map(|entry| entry.name));
                    if last {
                        break json!(names);
                    }
                }
            }
            Operation::Put { path, data, storage_class, location } => {
                let value = data.into_bytes()?;
                let bytes = value.len();
                self.put_at(&path, value, &place(storage_class.as_deref(), location.as_deref())?).await?;
                json!({ "bytes": bytes })
            }
            Operation::Get { path } => data(&self.get(&path).await?),
            Operation::Append { path, data, storage_class, location } => {
                let place = place(storage_class.as_deref(), location.as_deref())?;
                json!({ "bytes": self.append_at(&path, data.into_bytes()?, &place).await? })
            }
            Operation::Write { path, offset, data } => json!({ "bytes": self.write(&path, offset, data.into_bytes()?).await? }),
            Operation::Read { path, offset, bytes } => data(&self.read(&path, offset, bytes).await?),
            Operation::Rename { path, to } => {
                self.rename(&path, &to).await?;
                json!({})
            }
            Operation::Delete { path, recursive } => {
                self.delete(&path, recursive).await?;
                json!({})
            }
            Operation::Bag { path } => data(&self.bag(&path).await?.read_all().await?),
            Operation::Quota { path, bytes } => {
                self.set_quota(&path, bytes).await?;
                json!({})
            }
            Operation::Usage { path } => {
                let usage = self.usage(&path).await?;
                json!({ "bytes": usage.bytes, "quota": usage.quota })
            }
            Operation::Sleep { ms } => {
                forebay_runtime::time::sleep(Duration::from_millis(ms)).await;
                json!({})
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_lifted_by_null_alone() {
        let read = |line: &str| serde_json::from_str::<Operation>(line);
        let quota = |line: &str| match read(line) {
            Ok(Operation::Quota { bytes, .. }) => bytes,
            _ => panic!("no quota: {line}"),
        };
        assert_eq!(quota(r#"{"op":"quota","path":"/tmp/a","bytes":5}"#), Some(5));
        assert_eq!(quota(r#"{"op":"quota","path":"/tmp/a","bytes":null}"#), None);
        let error = read(r#"{"op":"quota","path":"/tmp/a"}"#).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("bytes")));
    }
}
