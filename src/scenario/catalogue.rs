//! The scenarios that are compiled in: one line each.

use super::spec::ScenarioSpec;
use crate::catalogue::{Catalogue, Environment, Found};
use crate::error::Result;

/// All scenarios.
pub const SCENARIOS: Catalogue = Catalogue {
    noun: "scenario",
    directory: "scenarios",
    built_in: &[
        ("compressible-46-cross-drive", include_str!("../../scenarios/compressible-46-cross-drive.toml")),
        ("compressible-46-same-drive", include_str!("../../scenarios/compressible-46-same-drive.toml")),
        ("compressible-67-cross-drive", include_str!("../../scenarios/compressible-67-cross-drive.toml")),
        ("compressible-67-same-drive", include_str!("../../scenarios/compressible-67-same-drive.toml")),
        ("compressible-8-cross-drive", include_str!("../../scenarios/compressible-8-cross-drive.toml")),
        ("compressible-8-same-drive", include_str!("../../scenarios/compressible-8-same-drive.toml")),
        ("fill-drive", include_str!("../../scenarios/fill-drive.toml")),
        ("incompressible-cross-drive", include_str!("../../scenarios/incompressible-cross-drive.toml")),
        ("incompressible-same-drive", include_str!("../../scenarios/incompressible-same-drive.toml")),
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
        ("small-files-cross-drive", include_str!("../../scenarios/small-files-cross-drive.toml")),
        ("small-files-same-drive", include_str!("../../scenarios/small-files-same-drive.toml")),
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
