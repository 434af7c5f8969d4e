//! Specs by name: those compiled in, those in the user's configuration directory, and any file that is named by its path, all by the same code.

use std::path::{Path, PathBuf};

use crate::error::{Error, IoFailure, Result, Side};
use crate::platform::{Host, read_text};

/// A kind of spec and where it is looked for.
pub struct Catalogue {
    /// What one is called: "corpus".
    pub noun: &'static str,
    /// The directory of the user's own ones below the configuration directory.
    pub directory: &'static str,
    /// The ones compiled in: name and text, sorted by name.
    pub built_in: &'static [(&'static str, &'static str)],
}

/// A spec that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name, or its path where it was named by one.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where it came from, for messages: "built in" or a path.
    pub origin: String,
}

impl Found {
    /// An error in the text, with its place.
    #[must_use]
    pub fn error(&self, reason: &str) -> Error {
        let origin = if self.origin == self.name { String::new() } else { format!(" ({})", self.origin) };
        Error::Refused(format!("{}{origin}: {}", self.name, reason.trim_end()))
    }
}

impl Catalogue {
    /// Finds a spec by its name or by its path.
    ///
    /// # Errors
    /// `Refused`, with the name that was probably meant.
    pub fn find(&self, name: &str, environment: &Environment) -> Result<Found> {
        if is_path(name) {
            let text = read(Path::new(name))?;
            return Ok(Found { name: name.to_owned(), text, origin: name.to_owned() });
        }
        if let Some(&(name, text)) = self.built_in.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(Found { name: name.to_owned(), text: text.to_owned(), origin: "built in".to_owned() });
        }
        let own = self.own(environment);
        if let Some((_, path)) = own.iter().find(|(own, _)| own == name) {
            let text = read(path)?;
            return Ok(Found { name: name.to_owned(), text, origin: path.display().to_string() });
        }
        Err(unknown(self.noun, name, &self.names(environment)))
    }

    /// All names with their texts: the built-in ones first, then the user's own; what can't be read is left out.
    #[must_use]
    pub fn all(&self, environment: &Environment) -> Vec<Found> {
        let built_in = self.built_in.iter().map(|&(name, text)| Found { name: name.into(), text: text.into(), origin: "built in".into() });
        let own = self.own(environment).into_iter().filter_map(|(name, path)| {
            let text = read_text(&path).ok()?;
            Some(Found { name, text, origin: path.display().to_string() })
        });
        built_in.chain(own).collect()
    }

    /// All names.
    #[must_use]
    pub fn names(&self, environment: &Environment) -> Vec<String> {
        let own = self.own(environment).into_iter().map(|(name, _)| name);
        self.built_in.iter().map(|&(name, _)| name.to_owned()).chain(own).collect()
    }

    fn own(&self, environment: &Environment) -> Vec<(String, PathBuf)> {
        let Some(directory) = environment.configuration.as_ref().map(|configuration| configuration.join(self.directory)) else {
            return Vec::new();
        };
        let names = Host::real().names(&directory);
        names.into_iter().filter_map(|name| Some((name.strip_suffix(".toml")?.to_owned(), directory.join(&name)))).collect()
    }
}

/// Whether a spec is named by its path: it ends in `.toml` or holds a `/`.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// The refusal of a name that is none of those known, with those that were probably meant: the ones that begin with it, else the most similar one.
#[must_use]
pub fn unknown(noun: &str, name: &str, known: &[String]) -> Error {
    let shown = name.escape_debug();
    let longer: Vec<String> =
        known.iter().filter(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))).map(|known| format!("\"{known}\"")).collect();
    let nearest = known.iter().map(|known| (strsim::normalized_damerau_levenshtein(known, name), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    Error::Refused(match nearest {
        _ if !longer.is_empty() && !name.is_empty() => format!("there is no {noun} \"{shown}\": did you mean {}?", longer.join(" or ")),
        Some((likeness, known)) if likeness > 0.5 => format!("there is no {noun} \"{shown}\": did you mean \"{known}\"?"),
        _ => format!("there is no {noun} \"{shown}\": `copysim list` shows all"),
    })
}

/// The text of a spec's file.
fn read(path: &Path) -> Result<String> {
    let failed = |source| IoFailure { operation: "read", side: Side::Host, path: path.to_path_buf(), offset: None, source };
    read_text(path).map_err(|error| Error::Refused(failed(error).to_string()))
}

/// Where the user keeps things, from the environment variables of the XDG base directory specification.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `$XDG_CONFIG_HOME/copysim` or `~/.config/copysim`.
    pub configuration: Option<PathBuf>,
}

impl Environment {
    /// From the process's variables.
    #[must_use]
    pub fn of_process() -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
        Self { configuration: base.map(|base| base.join("copysim")) }
    }
}
