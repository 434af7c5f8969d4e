//! Copies by another program: the user's own copier, measured like ours.

use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::Trees;
use crate::error::{Error, Result};
use crate::measure::calls::{Calls, Op};
use crate::platform::die_with_parent;

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(2);
/// How long a program that was asked to end may take before it is made to.
const PATIENCE: Duration = Duration::from_secs(3);

/// A command line with `{source}` and `{target}` in it, run by `sh -c`. Both stand for directories that exist; the target is empty.
pub struct Command {
    template: String,
}

impl Command {
    /// Takes a template.
    ///
    /// # Errors
    /// `Refused` when it does not name both ends.
    pub fn new(template: &str) -> Result<Self> {
        if template.contains("{source}") && template.contains("{target}") {
            return Ok(Self { template: template.to_owned() });
        }
        Err(Error::Refused(format!(
            "the command \"{}\" must say {{source}} and {{target}}, as in 'command:cp -r {{source}}/. {{target}}/'",
            template.escape_debug()
        )))
    }

    /// The template as given.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Runs the program and waits for it. When the copy is cancelled the program and all that it started are ended.
    ///
    /// # Errors
    /// `Internal` with what the program said when it failed, `Interrupted`.
    pub fn run(&self, trees: Trees<'_>, calls: &mut Calls<'_>) -> Result<()> {
        let clock = calls.clock();
        let start = clock.now_ns();
        let mut child = self.start(trees)?;
        let said = child.stderr.take().map(|stderr| std::thread::spawn(move || first_words(stderr)));
        let mut asked_at = None;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(Error::Internal(format!("cannot wait for the command: {error}"))),
            }
            match (trees.cancel.signal(), asked_at) {
                (Some(_), None) => {
                    signal_group(&child, rustix::process::Signal::TERM);
                    asked_at = Some(clock.now_ns());
                }
                (Some(_), Some(asked)) if clock.now_ns() - asked > PATIENCE.as_nanos() as u64 => {
                    signal_group(&child, rustix::process::Signal::KILL);
                }
                _ => {}
            }
            clock.sleep(POLL);
        };
        calls.add(Op::Command, clock.now_ns() - start);
        trees.cancel.check()?;
        if status.success() {
            return Ok(());
        }
        let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
        let said = said.trim();
        let colon = if said.is_empty() { "" } else { ": " };
        Err(Error::Internal(format!("the command \"{}\" failed ({status}){colon}{said}", self.template)))
    }

    fn start(&self, trees: Trees<'_>) -> Result<Child> {
        let line = substitute(&self.template, trees.source_path, trees.target_path);
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(std::ffi::OsString::from_vec(line));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        die_with_parent(&mut command);
        command.spawn().map_err(|error| Error::Internal(format!("cannot start sh for the command: {error}")))
    }
}

/// The beginning of what a program says; the rest is read and forgotten, so that it never waits for us.
fn first_words(mut from: impl Read) -> String {
    let mut said = Vec::new();
    // What it said is a help; that it failed is known without it.
    let _ = from.by_ref().take(4096).read_to_end(&mut said);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    String::from_utf8_lossy(&said).into_owned()
}

/// Puts the quoted paths in place of `{source}` and `{target}`.
fn substitute(template: &str, source: &Path, target: &Path) -> Vec<u8> {
    let mut line = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        line.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let named = [("{source}", source), ("{target}", target)].into_iter().find(|(name, _)| rest.starts_with(name));
        match named {
            Some((name, path)) => {
                line.extend(quote(path));
                rest = &rest[name.len()..];
            }
            None => {
                line.push(b'{');
                rest = &rest[1..];
            }
        }
    }
    line.extend_from_slice(rest.as_bytes());
    line
}

/// A path as one word of the shell, whatever bytes it has.
fn quote(path: &Path) -> Vec<u8> {
    let mut word = vec![b'\''];
    for &byte in path.as_os_str().as_bytes() {
        if byte == b'\'' { word.extend_from_slice(b"'\\''") } else { word.push(byte) }
    }
    word.push(b'\'');
    word
}

fn signal_group(child: &Child, signal: rustix::process::Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = pid {
        // A group that has just ended needs no signal.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_single_words_whatever_they_hold() {
        let line = substitute("cp -r {source}/. {target}/{x}", Path::new("/a b"), Path::new("/it's {source}; rm"));
        assert_eq!(String::from_utf8(line).unwrap(), r"cp -r '/a b'/. '/it'\''s {source}; rm'/{x}");
    }

    #[test]
    fn a_command_names_both_ends() {
        assert!(Command::new("cp -r {source} x").is_err());
        assert!(Command::new("cp -r {source}/. {target}").is_ok());
    }
}
