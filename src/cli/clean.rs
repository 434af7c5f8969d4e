//! `copysim clean [DIR]`: removes everything of copysim's from a directory, and nothing else.

use std::path::PathBuf;

use super::{Outcome, output};
use crate::drive::Workspace;
use crate::path_text::path_text;
use crate::platform::OS;
use crate::report::printable;
use crate::units::{Bytes, files};

#[derive(clap::Args)]
pub struct Args {
    /// The directory that was measured
    #[arg(default_value = ".")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> Outcome {
    let Some(workspace) = Workspace::open_existing(OS, &args.directory)? else {
        output::print(&format!("there is nothing of copysim's in {}\n", printable(&path_text(&args.directory))))?;
        return Ok(0);
    };
    let path = printable(&path_text(workspace.path()));
    let cleaned = workspace.clean()?;
    let mut text = format!("removed {}, {}, from {path}\n", files(cleaned.removal.files), Bytes(cleaned.removal.bytes));
    for foreign in &cleaned.foreign {
        text.push_str(&format!("left {}: it is not copysim's\n", printable(&path_text(foreign))));
    }
    output::print(&text)?;
    match cleaned.removal.left.into_iter().next() {
        Some(left) => Err(left.reason),
        None => Ok(0),
    }
}
