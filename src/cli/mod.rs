//! The command line: one file per subcommand, no logic of its own. Parsing, printing and asking happen here and nowhere else.

mod capacity;
mod check;
mod clean;
mod completions;
mod corpus;
mod drive;
mod endurance;
mod front;
mod launch;
mod list;
mod man;
mod options;
mod output;
mod plan;
mod report;
mod scenario;
mod show;
mod signals;
mod watch;
mod watchdog;

use clap::{CommandFactory, Parser, Subcommand};

use crate::error::Result;

/// How long will this drive make you wait? Real-world copies, timed to the moment at which they are safe, with the evidence.
#[derive(Parser)]
#[command(name = "copysim", version, about, max_term_width = 100, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done · 1 I/O or internal error · 2 usage, plan or target refused · 3 with --strict: an invalidating flag · \
4 data differ, or the capacity is faked · 130/143 ended by a signal";

#[derive(Subcommand)]
enum Command {
    /// Measures: copies a corpus as a person would and says how long it takes.
    Scenario(scenario::Args),
    /// Checks whether a drive holds what it claims: fills it, reads it again, unmasks fakes.
    Capacity(capacity::Args),
    /// Writes a drive over and over until a limit or the first loss: what it forgets, and when.
    Endurance(endurance::Args),
    /// Measures how long a program takes to start: cold, from the drive, and warm, from memory.
    Launch(launch::Args),
    /// Makes, digests and verifies corpora; takes the shape of a real folder.
    #[command(subcommand)]
    Corpus(corpus::Command),
    /// Lists scenarios, corpora and engines.
    List(list::Args),
    /// Shows the definition of a scenario or corpus.
    Show(show::Args),
    /// Shows what a scenario would do, step by step, without doing it.
    Plan(plan::Args),
    /// Shows what lies under directories: drive, link, wear, machine, and what is plainly wrong.
    Drive(drive::Args),
    /// Shows a result again.
    Report(report::Args),
    /// Removes everything of copysim's from a directory.
    Clean(clean::Args),
    /// Prints the manual page.
    Man,
    /// Prints completions for a shell.
    Completions(completions::Args),
}

/// Parses the command line, does what it says, and returns the exit code.
#[must_use]
pub fn main() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            output::explain(&error);
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    // What reads and writes on drives may be held by one for as long as it likes.
    let on_drives = matches!(
        cli.command,
        Command::Scenario(_) | Command::Capacity(_) | Command::Endurance(_) | Command::Launch(_) | Command::Corpus(_) | Command::Clean(_)
    );
    if let Some(code) = on_drives.then(front::split_off).flatten() {
        return code;
    }
    exit_code(match cli.command {
        Command::Scenario(args) => scenario::run(args),
        Command::Capacity(args) => capacity::run(args),
        Command::Endurance(args) => endurance::run(args),
        Command::Launch(args) => launch::run(args),
        Command::Corpus(command) => corpus::run(command),
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Plan(args) => plan::run(args),
        Command::Drive(args) => drive::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Man => man::run(&Cli::command()),
        Command::Completions(args) => completions::run(&args, &mut Cli::command()),
    })
}

/// The exit code of what a subcommand came to; tells what went wrong.
fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(error) if output::reader_left(&error) => 0,
        Err(error) => {
            output::complain(&error);
            error.exit_code()
        }
    }
}

/// What a subcommand comes to: an exit code, or an error that has one.
type Outcome = Result<u8>;
