//! The scenarios that are compiled in: one line each.

use super::spec::ScenarioSpec;
use crate::catalogue::{Catalogue, Environment, Found};
use crate::error::Result;

/// All scenarios.
pub const SCENARIOS: Catalogue = Catalogue {
    noun: "scenario",
    directory: "scenarios",
    built_in: &[
        ("app-load-browser", include_str!("../../scenarios/app-load-browser.toml")),
        ("app-load-browser-low-memory", include_str!("../../scenarios/app-load-browser-low-memory.toml")),
        ("app-load-game", include_str!("../../scenarios/app-load-game.toml")),
        ("app-load-game-low-memory", include_str!("../../scenarios/app-load-game-low-memory.toml")),
        ("app-load-ide", include_str!("../../scenarios/app-load-ide.toml")),
        ("app-load-ide-low-memory", include_str!("../../scenarios/app-load-ide-low-memory.toml")),
        ("app-load-office-suite", include_str!("../../scenarios/app-load-office-suite.toml")),
        ("app-load-office-suite-low-memory", include_str!("../../scenarios/app-load-office-suite-low-memory.toml")),
        ("app-load-photo-editor", include_str!("../../scenarios/app-load-photo-editor.toml")),
        ("app-load-photo-editor-low-memory", include_str!("../../scenarios/app-load-photo-editor-low-memory.toml")),
        ("compressible-46-cross-drive", include_str!("../../scenarios/compressible-46-cross-drive.toml")),
        ("compressible-46-same-drive", include_str!("../../scenarios/compressible-46-same-drive.toml")),
        ("compressible-67-cross-drive", include_str!("../../scenarios/compressible-67-cross-drive.toml")),
        ("compressible-67-same-drive", include_str!("../../scenarios/compressible-67-same-drive.toml")),
        ("compressible-8-cross-drive", include_str!("../../scenarios/compressible-8-cross-drive.toml")),
        ("compressible-8-same-drive", include_str!("../../scenarios/compressible-8-same-drive.toml")),
        ("emmc-vs-ssd", include_str!("../../scenarios/emmc-vs-ssd.toml")),
        ("fill-drive", include_str!("../../scenarios/fill-drive.toml")),
        ("incompressible-cross-drive", include_str!("../../scenarios/incompressible-cross-drive.toml")),
        ("incompressible-same-drive", include_str!("../../scenarios/incompressible-same-drive.toml")),
        ("install-program", include_str!("../../scenarios/install-program.toml")),
        ("jpg-cross-drive", include_str!("../../scenarios/jpg-cross-drive.toml")),
        ("jpg-same-drive", include_str!("../../scenarios/jpg-same-drive.toml")),
        ("large-file-cross-drive", include_str!("../../scenarios/large-file-cross-drive.toml")),
        ("large-file-same-drive", include_str!("../../scenarios/large-file-same-drive.toml")),
        ("mixed-25-cross-drive", include_str!("../../scenarios/mixed-25-cross-drive.toml")),
        ("mixed-25-same-drive", include_str!("../../scenarios/mixed-25-same-drive.toml")),
        ("mixed-75-cross-drive", include_str!("../../scenarios/mixed-75-cross-drive.toml")),
        ("mixed-75-same-drive", include_str!("../../scenarios/mixed-75-same-drive.toml")),
        ("mixed-cross-drive", include_str!("../../scenarios/mixed-cross-drive.toml")),
        ("mixed-same-drive", include_str!("../../scenarios/mixed-same-drive.toml")),
        ("mp3-cross-drive", include_str!("../../scenarios/mp3-cross-drive.toml")),
        ("mp3-same-drive", include_str!("../../scenarios/mp3-same-drive.toml")),
        ("open-thumbnails", include_str!("../../scenarios/open-thumbnails.toml")),
        ("paging-mix", include_str!("../../scenarios/paging-mix.toml")),
        ("read-large-file", include_str!("../../scenarios/read-large-file.toml")),
        ("read-mailbox", include_str!("../../scenarios/read-mailbox.toml")),
        ("save-document", include_str!("../../scenarios/save-document.toml")),
        ("small-files-cross-drive", include_str!("../../scenarios/small-files-cross-drive.toml")),
        ("small-files-same-drive", include_str!("../../scenarios/small-files-same-drive.toml")),
        ("user-experience", include_str!("../../scenarios/user-experience.toml")),
        ("zero-fill-cross-drive", include_str!("../../scenarios/zero-fill-cross-drive.toml")),
        ("zero-fill-same-drive", include_str!("../../scenarios/zero-fill-same-drive.toml")),
    ],
};

/// The scenario of a name or path, and where it was found.
///
/// # Errors
/// `Refused`: no such scenario, or an error in its file.
pub fn scenario(name: &str, environment: &Environment) -> Result<(ScenarioSpec, Found)> {
    let found = SCENARIOS.find(name, environment)?;
    let spec = ScenarioSpec::parse(&found.text).map_err(|reason| found.error(&reason))?;
    Ok((spec, found))
}
