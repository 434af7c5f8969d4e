//! What is to be known before the figures of two records are compared.

use super::printable::{printable, wrap};
use super::text::{HANG, WIDTH};
use crate::result::{self, Document};

/// In what two records differ besides their figures, as text with a final newline.
#[must_use]
pub fn differences(a: &Document, b: &Document) -> String {
    let found = result::differences(a, b);
    if found.is_empty() {
        return "Nothing that was recorded about machine, drive and work differs between the two.\n".to_owned();
    }
    let lines: Vec<String> = found.iter().map(|difference| wrap(&format!("  {}", printable(difference)), WIDTH, HANG)).collect();
    format!("WHAT DIFFERS BESIDES THE FIGURES (the first against the second)\n{}\n", lines.join("\n"))
}
