//! Flags of `forebay node`, and the page of operations that its `batch` reads.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_types::ByteSize;

use super::mounts::{Given, given};

/// What a program writes.
const OPERATIONS: &str = "Operations, and what each answers:
  {\"op\":\"create\",\"path\":P,\"type\":\"file|key-value|table|directory|bag\",
   \"enumerable\":true,\"storage_class\":\"dram\",
   \"location\":\"LABEL\"}                               {\"ok\":{\"type\":T}}
  {\"op\":\"stat\",\"path\":P}                                {\"ok\":{\"type\":T,\"bytes\":N}}, or {\"ok\":null};
                                                    with \"storage_class\" where it is not dram, and
                                                    \"location\" where the node asks for one
  {\"op\":\"list\",\"path\":P}                                {\"ok\":[NAME, ..]}, sorted
  {\"op\":\"put\",\"path\":P,\"data\":D}                        {\"ok\":{\"bytes\":N}}
  {\"op\":\"get\",\"path\":P}                                 {\"ok\":D}
  {\"op\":\"append\",\"path\":P,\"data\":D}                     {\"ok\":{\"bytes\":N}}, the file's length
                                                    put and append take \"storage_class\" and
                                                    \"location\" too: a file is made where there is none
  {\"op\":\"write\",\"path\":P,\"offset\":N,\"data\":D}           {\"ok\":{\"bytes\":N}}, the file's length
  {\"op\":\"read\",\"path\":P,\"offset\":N,\"bytes\":N}           {\"ok\":D}
  {\"op\":\"rename\",\"path\":P,\"to\":P}                       {\"ok\":{}}
  {\"op\":\"delete\",\"path\":P,\"recursive\":false}            {\"ok\":{}}
  {\"op\":\"bag\",\"path\":P}                                 {\"ok\":D}, its files one after the other
  {\"op\":\"quota\",\"path\":P,\"bytes\":N}                    {\"ok\":{}}; null instead of N lifts it
  {\"op\":\"usage\",\"path\":P}                               {\"ok\":{\"bytes\":N,\"quota\":N or null}}, of a container
  {\"op\":\"sleep\",\"ms\":N}                                 {\"ok\":{}}
D is text, or {\"base64\":\"..\"} for bytes that are not UTF-8. An operation that fails answers
{\"error\":KIND,\"message\":\"..\"} with NotFound, Exists, NotEmpty, NotContainer, WrongType, Invalid, NoSpace, DataLost,
Retry or Denied, and the next one is done. The exit code is 0 when all were read.";

#[derive(Subcommand)]
pub(crate) enum NodeCommand {
    /// Put a value: the whole of a key-value, new or in the old one's place
    Put(NodeBytesArgs),
    /// Print a value, or a file
    Get(NodePathArgs),
    /// List a container
    Ls(NodeLsArgs),
    /// Delete nodes
    Rm(NodeRmArgs),
    /// Make a directory, table or bag
    Mkdir(NodeMkdirArgs),
    /// Add to the end of a file, which is made when there is none
    Append(NodeBytesArgs),
    /// Print all files of a bag, one after the other
    Bag(NodePathArgs),
    /// Show what a node is
    Stat(NodeStatArgs),
    /// Show or set how much the files and values in a container may have
    Quota(NodeQuotaArgs),
    /// Rename a node, or move it into a container
    Mv(NodeMvArgs),
    /// Answer JSON operations, one a line, with one JSON line each
    Batch(NodeBatchArgs),
}

/// A path.
#[derive(Args)]
pub(crate) struct NodePathArgs {
    /// A path below /tmp
    pub(crate) path: String,
}

#[derive(Args)]
pub(crate) struct NodeBytesArgs {
    /// A path below /tmp
    pub(crate) path: String,
    /// A file with the bytes; the standard input without it
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Where its blocks may lie: dram is memory first, disk when that is full, disk is disk only. As the node has it without it,
    /// a new one as its container. A value that is of another class is replaced at once; a file keeps its class
    #[arg(long, value_name = "CLASS", value_parser = ["dram", "disk"])]
    pub(crate) storage_class: Option<String>,
    /// Label of the workers that its blocks go to as long as they have room, or any; of a new node that is made without it as
    /// in its container
    #[arg(long, value_name = "LABEL")]
    pub(crate) location: Option<String>,
}

#[derive(Args)]
pub(crate) struct NodeLsArgs {
    /// A container
    #[arg(default_value = "/tmp")]
    pub(crate) path: String,
    /// Types and bytes too
    #[arg(short, long)]
    pub(crate) long: bool,
    /// One JSON object a node
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct NodeRmArgs {
    /// Paths below /tmp
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Containers with all that is in them
    #[arg(short, long)]
    pub(crate) recursive: bool,
}

#[derive(Args)]
pub(crate) struct NodeMkdirArgs {
    /// A path below /tmp
    pub(crate) path: String,
    /// directory, table or bag
    #[arg(long = "type", value_name = "TYPE", default_value = "directory", value_parser = ["directory", "table", "bag"])]
    pub(crate) kind: String,
    /// The directories on the way to it, too; what is there already is no error
    #[arg(short, long)]
    pub(crate) parents: bool,
    /// Where blocks of its nodes may lie: dram is memory first, disk when that is full, disk is disk only; as in its container
    /// without it
    #[arg(long, value_name = "CLASS", value_parser = ["dram", "disk"])]
    pub(crate) storage_class: Option<String>,
    /// Label of the workers that blocks of its nodes go to as long as they have room, or any; as in its container without it
    #[arg(long, value_name = "LABEL")]
    pub(crate) location: Option<String>,
    /// All files and values in it have so much at most, as in 10GiB: what is more is refused
    #[arg(long, value_name = "SIZE")]
    pub(crate) quota: Option<ByteSize>,
    /// It goes away with all that is in it unless this command is repeated in time
    #[arg(long, value_name = "DURATION", value_parser = forebay_types::parse_duration)]
    pub(crate) lease: Option<std::time::Duration>,
}

#[derive(Args)]
pub(crate) struct NodeStatArgs {
    /// A path below /tmp
    pub(crate) path: String,
    /// A JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct NodeQuotaArgs {
    /// A directory, table or bag
    pub(crate) path: String,
    /// What all files and values in it have at most from now on, as in 10GiB, or none; without it what they have is shown
    #[arg(value_name = "SIZE", value_parser = given::<ByteSize>)]
    pub(crate) size: Option<Given<ByteSize>>,
    /// A JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct NodeMvArgs {
    /// A path below /tmp
    pub(crate) from: String,
    /// Its new path, or a container that takes it in
    pub(crate) to: String,
}

#[derive(Args)]
#[command(after_long_help = OPERATIONS)]
pub(crate) struct NodeBatchArgs {
    /// A file of operations, one JSON object a line; the standard input without it
    #[arg(value_name = "FILE")]
    pub(crate) operations: Option<PathBuf>,
}
