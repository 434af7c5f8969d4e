//! `copysim list`: what there is.

use clap::ValueEnum;
use serde::Deserialize;

use super::{Outcome, output};
use crate::catalogue::{Catalogue, Environment};
use crate::corpus::catalogue::CORPORA;
use crate::engine::ENGINES;
use crate::scenario::catalogue::SCENARIOS;

#[derive(clap::Args)]
pub struct Args {
    /// Only this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// What can be measured
    Scenario,
    /// What is copied
    Corpus,
    /// How it is copied
    Engine,
}

/// The one key of a spec that a list shows.
#[derive(Deserialize)]
struct Summary {
    summary: String,
}

pub fn run(args: &Args) -> Outcome {
    let environment = Environment::of_process();
    let mut text = String::new();
    let wants = |kind| args.kind.is_none_or(|wanted| wanted == kind);
    if wants(Kind::Scenario) {
        section(&mut text, "Scenarios (copysim scenario NAME [TARGET])", &specs(&SCENARIOS, &environment));
    }
    if wants(Kind::Corpus) {
        section(&mut text, "Corpora (copysim corpus generate NAME DIR)", &specs(&CORPORA, &environment));
    }
    if wants(Kind::Engine) {
        let mut engines: Vec<(String, String)> = ENGINES.iter().map(|engine| (engine.name.to_owned(), engine.summary.to_owned())).collect();
        engines.push(("command:…".to_owned(), "any program: 'command:rsync -a {source}/ {target}/'".to_owned()));
        section(&mut text, "Engines (--engine NAME)", &engines);
    }
    output::print(&text)?;
    Ok(0)
}

fn specs(catalogue: &Catalogue, environment: &Environment) -> Vec<(String, String)> {
    let summary = |text: &str| match toml::from_str::<Summary>(text) {
        Ok(spec) => spec.summary,
        Err(error) => format!("(not valid: {})", error.message()),
    };
    catalogue.all(environment).into_iter().map(|found| (found.name, summary(&found.text))).collect()
}

fn section(text: &mut String, title: &str, lines: &[(String, String)]) {
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(title);
    text.push('\n');
    for (name, summary) in lines {
        text.push_str(&format!("  {:width$}  {}\n", crate::report::printable(name), crate::report::printable(summary)));
    }
}
