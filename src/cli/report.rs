//! `copysim report FILE…`: results again, as they were shown.

use std::path::PathBuf;

use super::{Outcome, output};
use crate::error::{Context, Side};
use crate::platform::write_atomically;
use crate::report::{beside, differences, render};
use crate::result::store;

#[derive(clap::Args)]
pub struct Args {
    /// Result files; two are also set beside each other in one table, and it is said in what else they differ
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// text or json
    #[arg(long, default_value = "text")]
    format: String,
    /// Write here instead of to standard output
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
}

pub fn run(args: &Args) -> Outcome {
    let mut text = String::new();
    let documents = args.files.iter().map(|file| store::load(file)).collect::<crate::Result<Vec<_>>>()?;
    for (index, document) in documents.iter().enumerate() {
        if index > 0 && args.format == "text" {
            text.push('\n');
        }
        text.push_str(&render(document, &args.format)?);
    }
    if let ([first, second], "text") = (documents.as_slice(), args.format.as_str()) {
        if let Some(table) = beside(first, second) {
            text.push('\n');
            text.push_str(&table);
        }
        text.push('\n');
        text.push_str(&differences(first, second));
    }
    match &args.output {
        Some(path) => write_atomically(path, text.as_bytes()).during("write", Side::Host, path)?,
        None => output::print(&text)?,
    }
    Ok(0)
}
