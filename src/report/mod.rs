//! Views of a record: each computed from the document alone, at any time, on any machine.

mod beside;
mod capacity;
pub mod card;
mod curve;
mod differences;
mod endurance;
mod feel;
mod format;
mod group;
mod launch;
mod printable;
mod reservations;
mod tables;
mod text;
mod words;

pub use beside::beside;
pub use differences::differences;
pub use printable::{printable, printable_json, wrap};

use crate::result::Document;
use crate::{Error, Result};

/// A view: its name on the command line, what it is, and how it is made.
pub struct View {
    /// The name given to `--format`.
    pub name: &'static str,
    /// What it is, for lists.
    pub about: &'static str,
    render: fn(&Document) -> Result<String>,
}

/// The views there are. A new one is a new file and a line here.
pub static VIEWS: &[View] = &[
    View { name: "text", about: "for reading in a terminal, at most 100 columns", render: |document| Ok(text::render(document)) },
    View { name: "json", about: "the record itself", render: json },
];

/// Renders a record in the view of a name.
///
/// # Errors
/// [`Error::Refused`] for a name that is not in [`VIEWS`], saying which are.
pub fn render(document: &Document, format: &str) -> Result<String> {
    let Some(view) = VIEWS.iter().find(|view| view.name == format) else {
        let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        return Err(Error::Refused(format!("there is no format \"{}\"; there are: {}", printable(format), names.join(", "))));
    };
    (view.render)(document)
}

fn json(document: &Document) -> Result<String> {
    let json = serde_json::to_string_pretty(document).map_err(|error| Error::Internal(format!("the result cannot be written as JSON: {error}")))?;
    Ok(printable_json(&json) + "\n")
}
