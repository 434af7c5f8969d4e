//! Signs of readiness: by what a program is known to have started.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::platform::System;

/// How long a program does nothing before it counts as quiet, where that was not said.
const QUIET: Duration = Duration::from_secs(1);
/// No longer than this an answer to a connection is waited for at a time.
const CONNECTING: Duration = Duration::from_millis(250);

/// A sign of readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The program has ended.
    Exit,
    /// A port takes connections.
    Port {
        /// Where it is.
        host: String,
        /// Its number.
        port: u16,
    },
    /// A file is there that was not there before, or is another one than before.
    File(PathBuf),
    /// A line of the output contains a text.
    Line(String),
    /// Neither CPU nor storage were used for so long.
    Quiet(Duration),
}

impl FromStr for Sign {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        match (kind, rest) {
            ("exit", None) => Ok(Self::Exit),
            ("port", Some(rest)) => {
                let (host, port) = rest.rsplit_once(':').unwrap_or(("localhost", rest));
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("\"{port}\" is no port: as in port:localhost:8080"))?;
                if host.is_empty() {
                    Err("a port is at a host: as in port:localhost:8080".to_owned())
                } else {
                    Ok(Self::Port { host: host.to_owned(), port })
                }
            }
            ("file", Some(path)) if !path.is_empty() => Ok(Self::File(path.into())),
            ("line", Some(text)) if !text.is_empty() && !text.contains('\n') => Ok(Self::Line(text.to_owned())),
            ("quiet", None) => Ok(Self::Quiet(QUIET)),
            ("quiet", Some(time)) => match humantime::parse_duration(time) {
                Ok(time) if time >= super::look::LEAST_QUIET => Ok(Self::Quiet(time)),
                Ok(_) => Err(format!("a program is not known to be quiet before {}", humantime::format_duration(super::look::LEAST_QUIET))),
                Err(error) => Err(format!("\"{time}\" is no time: {error}")),
            },
            _ => Err("a sign is exit, port:HOST:PORT, file:PATH, line:TEXT, quiet or quiet:TIME".to_owned()),
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit => f.write_str("exit"),
            Self::Port { host, port } if host.contains(':') => write!(f, "port:[{host}]:{port}"),
            Self::Port { host, port } => write!(f, "port:{host}:{port}"),
            Self::File(path) => write!(f, "file:{}", crate::path_text::path_text(path)),
            Self::Line(text) => write!(f, "line:{text}"),
            Self::Quiet(time) => write!(f, "quiet:{}", humantime::format_duration(*time)),
        }
    }
}

impl Sign {
    /// The text that is looked for in the output, if that is the sign.
    #[must_use]
    pub fn text(&self) -> Option<&[u8]> {
        if let Self::Line(text) = self { Some(text.as_bytes()) } else { None }
    }

    /// Why it never came, as the end of a sentence: "… within 1m".
    #[must_use]
    pub fn is_awaited(&self) -> String {
        match self {
            Self::Exit => "it did not end".to_owned(),
            Self::Port { host, port } => format!("nothing took connections at port {port} of {host}"),
            Self::File(path) => format!("{} did not come", crate::path_text::path_text(path)),
            Self::Line(text) => format!("no line of its output had \"{text}\""),
            Self::Quiet(time) => format!("it was never quiet for {}", humantime::format_duration(*time)),
        }
    }
}

/// What a name stands for before a program is started: the file of this identity is no sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    device: (u32, u32),
    inode: u64,
    mtime: (i64, u32),
}

/// A sign that has to be looked for.
pub(super) enum Lookout {
    /// A port, by the addresses that its host has.
    Port(Vec<SocketAddr>),
    /// A file, and what was there before.
    File(PathBuf, Option<Known>),
}

impl Lookout {
    /// Gets ready to look for a sign; `None` where it comes by itself.
    ///
    /// # Errors
    /// `Refused` where the sign is there before anything was started, or can never come.
    pub(super) fn prepare(sign: &Sign, system: System<'_>) -> Result<Option<Self>> {
        match sign {
            Sign::Port { host, port } => {
                let found = (host.as_str(), *port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
                let addresses = found.map_err(|error| Error::Refused(format!("there is no host {}: {error}", host.escape_debug())))?;
                if accepts(&addresses) {
                    let words =
                        format!("something takes connections at {sign} already: that can't be a sign that the program has started; end it first");
                    return Err(Error::Refused(words));
                }
                Ok(Some(Self::Port(addresses)))
            }
            Sign::File(path) => Ok(Some(Self::File(path.clone(), identity(system, path)))),
            Sign::Exit | Sign::Line(_) | Sign::Quiet(_) => Ok(None),
        }
    }

    /// Whether the sign is there.
    pub(super) fn sees_it(&self, system: System<'_>) -> bool {
        match self {
            Self::Port(addresses) => accepts(addresses),
            Self::File(path, before) => identity(system, path).is_some_and(|now| Some(now) != *before),
        }
    }
}

fn accepts(addresses: &[SocketAddr]) -> bool {
    addresses.iter().any(|address| TcpStream::connect_timeout(address, CONNECTING).is_ok())
}

/// What is at a path of the user's.
fn identity(system: System<'_>, path: &Path) -> Option<Known> {
    let (directory, name) = (path.parent()?, path.file_name()?);
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let stat = system.files.stat_at(&system.files.open_root(directory).ok()?, Path::new(name)).ok()?;
    Some(Known { device: stat.device, inode: stat.inode, mtime: stat.mtime })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::OS;

    #[test]
    fn signs_are_read_as_people_write_them_and_written_so_that_they_can_be_read_again() {
        for (text, written) in [
            ("exit", "exit"),
            ("port:localhost:8080", "port:localhost:8080"),
            ("port:8080", "port:localhost:8080"),
            ("port:[::1]:80", "port:[::1]:80"),
            ("file:/run/x.pid", "file:/run/x.pid"),
            ("line:Listening on: 80", "line:Listening on: 80"),
            ("quiet", "quiet:1s"),
            ("quiet:1500ms", "quiet:1s 500ms"),
        ] {
            let sign: Sign = text.parse().unwrap();
            assert_eq!(sign.to_string(), written);
            assert_eq!(written.parse(), Ok(sign), "{text}");
        }
        for text in [
            "",
            "exit:3",
            "port",
            "port:",
            "port:host:0",
            "port:host:70000",
            "port::80",
            "file:",
            "line:",
            "quiet:",
            "quiet:x",
            "quiet:1ms",
            "window:x",
        ] {
            assert!(text.parse::<Sign>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_is_a_sign_when_it_is_new_and_a_port_when_it_takes_connections() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ready");
        let look = |path: &Path| Lookout::prepare(&Sign::File(path.to_path_buf()), OS).unwrap().unwrap();
        let none = look(&path);
        assert!(!none.sees_it(OS));
        drop(crate::platform::append(&path).unwrap());
        assert!(none.sees_it(OS));
        // One that is there already is none until it is another.
        let there = look(&path);
        assert!(!there.sees_it(OS));
        crate::platform::write_atomically(&path, b"again").unwrap();
        assert!(there.sees_it(OS));

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sign = Sign::Port { host: "127.0.0.1".to_owned(), port };
        assert!(Lookout::prepare(&sign, OS).err().unwrap().to_string().contains("takes connections at port:127.0.0.1:"));
        drop(listener);
        let lookout = Lookout::prepare(&sign, OS).unwrap().unwrap();
        assert!(!lookout.sees_it(OS));
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(lookout.sees_it(OS));
        drop(listener);
    }
}
