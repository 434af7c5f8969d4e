//! The corpora that are compiled in: one line each.

use super::Corpus;
use super::spec::CorpusSpec;
use crate::catalogue::{Catalogue, Environment};
use crate::error::Result;
use crate::units::Scale;

/// All corpora.
pub const CORPORA: Catalogue = Catalogue {
    noun: "corpus",
    directory: "corpora",
    built_in: &[
        ("browser", include_str!("../../corpora/browser.toml")),
        ("compressible-46", include_str!("../../corpora/compressible-46.toml")),
        ("compressible-67", include_str!("../../corpora/compressible-67.toml")),
        ("compressible-8", include_str!("../../corpora/compressible-8.toml")),
        ("game", include_str!("../../corpora/game.toml")),
        ("ide", include_str!("../../corpora/ide.toml")),
        ("incompressible", include_str!("../../corpora/incompressible.toml")),
        ("jpg", include_str!("../../corpora/jpg.toml")),
        ("large-file", include_str!("../../corpora/large-file.toml")),
        ("mailbox", include_str!("../../corpora/mailbox.toml")),
        ("mixed", include_str!("../../corpora/mixed.toml")),
        ("mixed-25", include_str!("../../corpora/mixed-25.toml")),
        ("mixed-75", include_str!("../../corpora/mixed-75.toml")),
        ("mp3", include_str!("../../corpora/mp3.toml")),
        ("office-suite", include_str!("../../corpora/office-suite.toml")),
        ("photo-editor", include_str!("../../corpora/photo-editor.toml")),
        ("pictures", include_str!("../../corpora/pictures.toml")),
        ("small-files", include_str!("../../corpora/small-files.toml")),
        ("zero-fill", include_str!("../../corpora/zero-fill.toml")),
    ],
};

/// The corpus of a name or path, made concrete.
///
/// # Errors
/// `Refused`: no such corpus, an error in its file, or it can't be made at this scale.
pub fn corpus(name: &str, seed: u64, scale: Scale, environment: &Environment) -> Result<Corpus> {
    let found = CORPORA.find(name, environment)?;
    let spec = CorpusSpec::parse(&found.text).map_err(|reason| found.error(&reason))?;
    Corpus::new(spec, seed, scale)
}
