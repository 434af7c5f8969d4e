//! `copysim drive [DIR…]`: what lies under directories, and the machine, without measuring anything.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Outcome, output, scenario};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Host, OS, write_atomically};
use crate::report::{card, printable_json};
use crate::result::{self, Document};
use crate::scenario::facts;

#[derive(clap::Args)]
pub struct Args {
    /// Directories; of several it is said which lie on the same physical drive
    #[arg(default_value = ".", value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Also write the facts as JSON here; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show serial numbers, identifiers of file systems, host name, user name and home paths
    #[arg(long)]
    identify: bool,
}

pub fn run(args: &Args) -> Outcome {
    let host = Host::real();
    let inventory = facts::inventory(OS, &host, &args.directories, args.identify)?;
    let document = scenario::masked(&inventory.document, args.identify)?;
    let remarks = scenario::masked_texts(&inventory.remarks, args.identify);
    if args.json.as_deref() == Some(Path::new("-")) {
        output::print(&facts_as_json(&document)?)?;
        return Ok(0);
    }
    output::print(&card::render(&document, &remarks))?;
    if let Some(path) = &args.json {
        write_atomically(path, facts_as_json(&document)?.as_bytes()).during("write", Side::Host, path)?;
    }
    Ok(0)
}

/// Machine and drives in the record's own shape.
#[derive(Serialize)]
struct Facts<'a> {
    hosts: &'a [result::Host],
    drives: &'a [result::Drive],
}

fn facts_as_json(document: &Document) -> Result<String> {
    let facts = Facts { hosts: &document.hosts, drives: &document.drives };
    let text = serde_json::to_string_pretty(&facts).map_err(|error| Error::Internal(format!("the facts cannot be written as JSON: {error}")))?;
    Ok(printable_json(&text) + "\n")
}
