//! Names and directories: one layout per file below this directory, each yielding paths in bytewise order, in memory that does not grow with their number.

mod albums;
mod camera;
mod hashed;
mod named;
mod names;
mod nested;
mod numbered;
mod packages;

use super::spec::TreeSpec;

/// Paths of files, relative, with `/`, bytewise ascending.
pub type Paths<'a> = Box<dyn Iterator<Item = String> + Send + 'a>;

/// The paths of `files` files laid out as the spec says.
#[must_use]
pub fn paths<'a>(spec: &'a TreeSpec, key: &[u8; 32], files: u64) -> Paths<'a> {
    match spec {
        TreeSpec::Camera { files_per_folder } => Box::new(camera::paths(key, files, *files_per_folder)),
        TreeSpec::Albums { songs_per_album, albums_per_artist } => Box::new(albums::paths(key, files, *songs_per_album, *albums_per_artist)),
        TreeSpec::Numbered { prefix, suffix } => Box::new(numbered::paths(prefix, suffix, files)),
        TreeSpec::Packages { files_per_package } => Box::new(packages::paths(key, files, *files_per_package)),
        TreeSpec::Named { prefix, endings, files_per_folder } => Box::new(named::paths(key, files, prefix, endings, *files_per_folder)),
        TreeSpec::Hashed { suffix } => Box::new(hashed::paths(key, files, suffix)),
        TreeSpec::Nested { directories, files: at_depth } => Box::new(nested::paths(directories, at_depth, files)),
    }
}

/// The directories of `path` that are new after `last`, outermost first: in bytewise order all paths below a directory follow each other.
pub fn new_directories<'a>(last: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    path.match_indices('/').map(|(at, _)| at).filter(move |&at| last.get(..=at) != path.get(..=at)).map(|at| &path[..at])
}

/// The decimal digits that the numbers from 0 to `largest` need, at least `least`.
fn digits(largest: u64, least: usize) -> usize {
    largest.checked_ilog10().map_or(1, |log| log as usize + 1).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn layouts() -> Vec<TreeSpec> {
        vec![
            TreeSpec::Camera { files_per_folder: 128 },
            TreeSpec::Albums { songs_per_album: 12, albums_per_artist: 3 },
            TreeSpec::Numbered { prefix: "file-".into(), suffix: ".bin".into() },
            TreeSpec::Packages { files_per_package: 45 },
            TreeSpec::Named { prefix: "lib".into(), endings: vec![".so".into(), ".so.5".into()], files_per_folder: None },
            TreeSpec::Named { prefix: String::new(), endings: vec!["".into(), "-2.xml".into()], files_per_folder: Some(7) },
            TreeSpec::Hashed { suffix: String::new() },
            TreeSpec::Nested { directories: vec![1, 4, 9, 2], files: vec![3, 50, 200, 7] },
        ]
    }

    fn check(layout: &TreeSpec, key: &[u8; 32], files: u64) {
        let all: Vec<String> = paths(layout, key, files).collect();
        assert_eq!(all.len() as u64, files, "{layout:?}");
        assert!(all.windows(2).all(|pair| pair[0].as_bytes() < pair[1].as_bytes()), "{layout:?} is not in bytewise order or has a path twice");
        let mut folded = HashSet::new();
        let mut directories = HashSet::new();
        for path in &all {
            assert!(path.len() < 200 && path.is_ascii(), "{path}");
            assert!(folded.insert(path.to_ascii_lowercase()), "{path} collides where case is ignored");
            for part in path.split('/') {
                let bad = |c: char| c.is_control() || "<>:\"\\|?*".contains(c);
                assert!(!part.is_empty() && !part.contains(bad), "{path} is not portable");
                assert!(!part.starts_with(' ') && !part.ends_with([' ', '.']), "{path} is not portable");
            }
            for (at, _) in path.match_indices('/') {
                directories.insert(path[..at].to_ascii_lowercase());
            }
        }
        assert!(directories.is_disjoint(&folded), "{layout:?} has a file and a directory of one name");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn field_f04_every_layout_gives_portable_unique_paths_in_order(key: [u8; 32], files in 1_u64..3_000) {
            for layout in layouts() {
                check(&layout, &key, files);
            }
        }
    }

    #[test]
    fn a_directory_is_new_once() {
        let list = |last, path| new_directories(last, path).collect::<Vec<_>>();
        assert_eq!(list("", "a/b/c"), ["a", "a/b"]);
        assert_eq!(list("a/b/c", "a/b/d"), [""; 0]);
        assert_eq!(list("a/b.js", "a/b/c"), ["a/b"]);
        assert_eq!(list("a/bb/c", "a/c/d"), ["a/c"]);
        assert_eq!(list("", "f"), [""; 0]);
    }

    #[test]
    fn field_f06_large_numbers_of_files_stay_unique_where_case_is_ignored() {
        for layout in layouts() {
            check(&layout, &[5; 32], 250_000);
        }
    }
}
