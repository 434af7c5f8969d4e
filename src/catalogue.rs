//! Specs by name: those compiled in, those in the user's configuration directory, and any file that is named by its path, all by the same code.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
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
        Error::Refused(format!("{} ({}): {}", self.name, self.origin, reason.trim_end()))
    }
}

impl Catalogue {
    /// Finds a spec by its name, or by its path when it ends in `.toml` or holds a `/`.
    ///
    /// # Errors
    /// `Refused`, with the name that was probably meant.
    pub fn find(&self, name: &str, environment: &Environment) -> Result<Found> {
        if name.contains('/') || name.ends_with(".toml") {
            let text = read_text(Path::new(name)).map_err(|error| Error::Refused(format!("cannot read the {} {name}: {error}", self.noun)))?;
            return Ok(Found { name: name.to_owned(), text, origin: name.to_owned() });
        }
        if let Some(&(name, text)) = self.built_in.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(Found { name: name.to_owned(), text: text.to_owned(), origin: "built in".to_owned() });
        }
        let own = self.own(environment);
        if let Some((_, path)) = own.iter().find(|(own, _)| own == name) {
            let text = read_text(path).map_err(|error| Error::Refused(format!("cannot read the {} {}: {error}", self.noun, path.display())))?;
            return Ok(Found { name: name.to_owned(), text, origin: path.display().to_string() });
        }
        Err(Error::Refused(self.unknown(name, environment)))
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

    fn own(&self, environment: &Environment) -> Vec<(String, PathBuf)> {
        let Some(directory) = environment.configuration.as_ref().map(|configuration| configuration.join(self.directory)) else {
            return Vec::new();
        };
        let names = Host::real().names(&directory);
        names.into_iter().filter_map(|name| Some((name.strip_suffix(".toml")?.to_owned(), directory.join(&name)))).collect()
    }

    fn unknown(&self, name: &str, environment: &Environment) -> String {
        let own = self.own(environment);
        let names = self.built_in.iter().map(|&(name, _)| name).chain(own.iter().map(|(name, _)| name.as_str()));
        let nearest = names.map(|known| (strsim::normalized_damerau_levenshtein(known, name), known)).max_by(|a, b| a.0.total_cmp(&b.0));
        let shown = name.escape_debug();
        match nearest {
            Some((likeness, known)) if likeness > 0.5 => format!("there is no {} \"{shown}\": did you mean \"{known}\"?", self.noun),
            _ => format!("there is no {} \"{shown}\": `copysim list` shows all", self.noun),
        }
    }
}

/// Where the user keeps things, from the environment variables of the XDG base directory specification.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `$XDG_CONFIG_HOME/copysim` or `~/.config/copysim`.
    pub configuration: Option<PathBuf>,
    /// `$XDG_DATA_HOME/copysim` or `~/.local/share/copysim`.
    pub data: Option<PathBuf>,
    /// The home directory, for masking.
    pub home: Option<PathBuf>,
}

impl Environment {
    /// From the process's variables.
    #[must_use]
    pub fn of_process() -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let base = |name: &str, below: &str| absolute(name).or_else(|| Some(home.as_ref()?.join(below))).map(|base| base.join("copysim"));
        Self { configuration: base("XDG_CONFIG_HOME", ".config"), data: base("XDG_DATA_HOME", ".local/share"), home }
    }
}
