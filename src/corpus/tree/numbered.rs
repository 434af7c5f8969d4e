//! Numbered files in one folder: `file-01.bin`.

use super::digits;

pub fn paths<'a>(prefix: &'a str, suffix: &'a str, files: u64) -> impl Iterator<Item = String> + use<'a> {
    let width = digits(files, 2);
    (1..=files).map(move |number| if files == 1 { format!("{prefix}{suffix}") } else { format!("{prefix}{number:0width$}{suffix}") })
}
