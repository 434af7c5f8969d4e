//! The program that is started: found as a shell would find it, and where its own file really lies.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::path_text::path_text;
use crate::platform::{Files, Host, Kind};

/// A likeness of names from which on one may have been meant for the other.
const LIKE: f64 = 0.5;

/// A program and its arguments.
#[derive(Debug, Clone)]
pub struct Program {
    /// What the user called it.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The file that the name stands for.
    pub path: PathBuf,
    /// The file at the end of all symbolic links.
    pub file: PathBuf,
}

impl Program {
    /// Finds a program: a name with a slash is a path, any other is looked for in the directories of `search_path`.
    ///
    /// # Errors
    /// `Refused` where there is none of that name, saying which might have been meant, or it is none.
    pub fn find(host: &Host, files: &dyn Files, command: &[OsString], search_path: &OsStr) -> Result<Self> {
        let Some((name, arguments)) = command.split_first().filter(|(name, _)| !name.is_empty()) else {
            return Err(Error::Refused("there is no program to start: say it after --, as in copysim launch -- git --version".to_owned()));
        };
        let program = |path: PathBuf, file: PathBuf| Self { name: name.clone(), arguments: arguments.to_vec(), path, file };
        if name.as_bytes().contains(&b'/') {
            let path = std::path::absolute(Path::new(name)).map_err(|error| Error::Refused(format!("{}: {error}", path_text(Path::new(name)))))?;
            let Some(file) = host.resolve(&path) else {
                return Err(Error::Refused(format!("there is no file {}", path_text(Path::new(name)))));
            };
            return match what_is_at(files, host, &file) {
                Some(What::Program) => Ok(program(path, file)),
                Some(What::Directory) => Err(Error::Refused(format!("{} is a directory: say the program in it", path_text(Path::new(name))))),
                _ => Err(Error::Refused(format!("{} is no program: it may not be executed (chmod +x)", path_text(Path::new(name))))),
            };
        }
        let directories: Vec<PathBuf> = std::env::split_paths(search_path).filter(|directory| directory.is_absolute()).collect();
        for path in directories.iter().map(|directory| directory.join(name)) {
            if let Some(file) = host.resolve(&path).filter(|file| what_is_at(files, host, file) == Some(What::Program)) {
                return Ok(program(path, file));
            }
        }
        Err(Error::Refused(missing(host, name, &directories)))
    }

    /// The command line as a person would write it.
    #[must_use]
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.name).chain(&self.arguments).map(|word| quoted(&path_text(Path::new(word))));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The directory in which its own file lies.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }
}

/// A word in quotes where a shell would not take it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Program,
    Directory,
    Other,
}

fn what_is_at(files: &dyn Files, host: &Host, file: &Path) -> Option<What> {
    const EXECUTABLE: u32 = 0o111;
    let directory = files.open_root(&host.path(file.parent().unwrap_or(Path::new("/")))).ok()?;
    let stat = match file.file_name() {
        Some(name) => files.stat_at(&directory, Path::new(name)).ok()?,
        None => files.stat(&directory).ok()?,
    };
    Some(match stat.kind {
        Kind::File if stat.mode & EXECUTABLE != 0 => What::Program,
        Kind::Directory => What::Directory,
        _ => What::Other,
    })
}

/// The sentence for a program that is not there.
fn missing(host: &Host, name: &OsStr, directories: &[PathBuf]) -> String {
    let shown = path_text(Path::new(name));
    let mut best: Option<(f64, String)> = None;
    for known in directories.iter().flat_map(|directory| host.names(directory)) {
        let likeness = strsim::normalized_damerau_levenshtein(&known, &shown);
        if likeness > best.as_ref().map_or(LIKE, |(most, _)| *most) {
            best = Some((likeness, known));
        }
    }
    match best {
        Some((_, known)) => format!("there is no program \"{}\" on PATH: did you mean \"{}\"?", shown.escape_debug(), known.escape_debug()),
        None => format!("there is no program \"{}\" on PATH", shown.escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::platform::OsFiles;

    fn finds(root: &Path, command: &[&str]) -> Result<Program> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let path = std::env::join_paths([root.join("one"), root.join("two")]).unwrap();
        Program::find(&Host::real(), &OsFiles, &command, &path)
    }

    #[test]
    fn a_program_is_found_as_a_shell_does_and_its_own_file_behind_the_links() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["one", "two", "real", "two/directory"] {
            std::fs::create_dir(root.join(directory)).unwrap();
        }
        std::fs::write(root.join("one/git"), "no program").unwrap();
        std::fs::write(root.join("real/git-2"), "").unwrap();
        std::fs::set_permissions(root.join("real/git-2"), std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../real/git-2", root.join("two/git")).unwrap();
        let found = finds(&root, &["git", "--version", "it's"]).unwrap();
        assert_eq!((found.path.clone(), found.file.clone()), (root.join("two/git"), root.join("real/git-2")));
        assert_eq!((found.directory(), found.line().as_str()), (root.join("real").as_path(), r"git --version 'it'\''s'"));
        let by_path = root.join("two/git").to_str().unwrap().to_owned();
        assert_eq!(finds(&root, &[&by_path]).unwrap().file, root.join("real/git-2"));
        let directory = root.join("two/directory").to_str().unwrap().to_owned();
        let no_program = root.join("one/git").to_str().unwrap().to_owned();
        for (command, words) in [
            (&["gti"][..], "there is no program \"gti\" on PATH: did you mean \"git\"?"),
            (&["libreoffice"], "there is no program \"libreoffice\" on PATH"),
            (&[], "there is no program to start"),
            (&[""], "there is no program to start"),
            (&["/no/such/file"], "there is no file /no/such/file"),
            (&[&directory], "is a directory: say the program in it"),
            (&[&no_program], "is no program: it may not be executed (chmod +x)"),
        ] {
            let error = finds(&root, command).unwrap_err();
            assert!(error.to_string().contains(words) && error.exit_code() == 2, "{error}");
        }
    }
}
