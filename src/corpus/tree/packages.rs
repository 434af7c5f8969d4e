//! Installed source packages: `node_modules/name/dist/part/file.js`, a deep and narrow tree of small files.

use super::names::{CODE_WORDS, Names};
use crate::corpus::random::{Choices, uneven};

/// What nearly every package has.
const FIXED: [&str; 4] = ["LICENSE", "README.md", "index.js", "package.json"];
/// Directories of a package, each below an earlier one or the package itself; a package uses the first few of its own order.
const FOLDERS: [&str; 14] = [
    "dist/",
    "lib/",
    "src/",
    "dist/cjs/",
    "dist/esm/",
    "lib/internal/",
    "src/util/",
    "test/",
    "types/",
    "dist/esm/shared/",
    "lib/internal/streams/",
    "src/util/test/fixtures/",
    "node_modules/inner/",
    "node_modules/inner/dist/cjs/compat/",
];
const ENDINGS: [&str; 10] = [".js", ".js", ".js", ".js.map", ".ts", ".d.ts", ".mjs", ".json", ".css", ".md"];

pub fn paths(key: &[u8; 32], files: u64, files_per_package: u64) -> impl Iterator<Item = String> + use<> {
    let packages = files.div_ceil(files_per_package);
    let key = *key;
    uneven(&key, "packages", packages, files).zip(0..).flat_map(move |(count, package)| {
        let name = Names::new(&[&CODE_WORDS, &CODE_WORDS], '-', packages, &key, "packages").get(package);
        of_package(&key, package, count).into_iter().map(move |path| format!("node_modules/{name}/{path}"))
    })
}

/// The paths within one package, sorted. A package has some hundred files at most, whatever the size of the tree.
fn of_package(key: &[u8; 32], package: u64, count: u64) -> Vec<String> {
    let mut choices = Choices::new(key, &format!("package {package}"));
    let mut paths: Vec<String> = FIXED.iter().take(count as usize).map(|&name| name.to_owned()).collect();
    let rest = count - paths.len() as u64;
    let used = 1 + choices.below(FOLDERS.len() as u64);
    let mut per_folder = vec![0_u64; FOLDERS.len()];
    for _ in 0..rest {
        per_folder[choices.below(used) as usize] += 1;
    }
    for (folder, &count) in FOLDERS.iter().zip(&per_folder) {
        let names = Names::new(&[&CODE_WORDS, &CODE_WORDS], '-', count, key, &format!("{package} {folder}"));
        paths.extend((0..count).map(|file| {
            let ending = ENDINGS[choices.below(ENDINGS.len() as u64) as usize];
            format!("{folder}{}{ending}", names.get(file))
        }));
    }
    paths.sort_unstable();
    paths
}
