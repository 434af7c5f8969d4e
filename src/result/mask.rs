//! Takes out of a record what says whose machine it was: names of user and host, serial numbers, home directories.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::Value;

use super::document::Document;
use super::terms::DriveKind;
use crate::{Error, Result};

/// What must not be in a record unless the user asked for it.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Home directories.
    pub homes: Vec<String>,
    /// Names of the user, and of the one behind `sudo`.
    pub users: Vec<String>,
    /// The host's name.
    pub host: Option<String>,
    /// Serial numbers of drives.
    pub serials: Vec<String>,
}

/// Directories whose entries are named after users.
const HOLDERS: [&str; 5] = ["/run/media/", "/var/home/", "/media/", "/home/", "/Users/"];
/// A shorter serial number is too likely to be part of something else.
const SHORTEST_SERIAL: usize = 5;

impl Identity {
    /// What the environment says: `HOME`, `USER`, `LOGNAME`, `SUDO_USER`.
    #[must_use]
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let users = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(env);
        Self { homes: env("HOME").into_iter().collect(), users: users.collect(), host: None, serials: Vec::new() }
    }

    /// A text without what it must not say: a home directory becomes `~`, a user's name in a path `user`, a serial number `SERIAL`.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        self.mask_with(text, "user")
    }

    /// A command of [`clean_command`] without what it must not say, which a shell of the user's still understands: home is `~`, the user `$USER`.
    #[must_use]
    pub fn mask_command(&self, command: &str) -> String {
        let escaped = |texts: &[String]| texts.iter().map(|text| escape(text)).collect();
        Self { homes: escaped(&self.homes), users: escaped(&self.users), serials: escaped(&self.serials), host: None }.mask_with(command, "$USER")
    }

    fn mask_with(&self, text: &str, user_word: &str) -> String {
        let mut masked = text.to_owned();
        // In names under /dev/disk/by-id a serial number stands between all kinds of signs.
        let sign = |neighbour: Option<char>| !neighbour.is_some_and(char::is_alphanumeric);
        for serial in self.serials.iter().filter(|serial| serial.len() >= SHORTEST_SERIAL) {
            masked = replace(&masked, serial, "SERIAL", sign, sign);
        }
        // The longest first: one home may lie in another.
        let mut homes: Vec<&str> = self.homes.iter().map(|home| home.trim_end_matches('/')).filter(|home| home.len() > 1).collect();
        homes.sort_by_key(|home| std::cmp::Reverse(home.len()));
        for home in homes {
            masked = replace(&masked, home, "~", |before| !word(before) && before != Some('/'), |after| !word(after));
        }
        for user in self.users.iter().filter(|user| !user.is_empty()) {
            for holder in HOLDERS {
                masked = replace(&masked, &format!("{holder}{user}"), &format!("{holder}{user_word}"), |_| true, |after| !word(after));
            }
        }
        masked
    }

    fn mask_host(&self, text: &str) -> String {
        match self.host.as_deref().filter(|host| !host.is_empty()) {
            Some(host) => replace(text, host, "HOST", |before| !word(before), |after| !word(after)),
            None => text.to_owned(),
        }
    }
}

/// Masks a whole record, in every text that it holds.
///
/// # Errors
/// None that a well-formed record could cause; [`Error::Internal`] otherwise.
pub fn mask(document: &mut Document, identity: &Identity) -> Result<()> {
    let mut identity = identity.clone();
    identity.serials.extend(document.drives.iter().flat_map(|drive| [drive.serial.clone(), drive.uuid.clone()]).flatten());
    identity.host = identity.host.or_else(|| document.hosts.iter().find_map(|host| host.name.clone()));
    for host in &mut document.hosts {
        host.name = None;
    }
    for drive in &mut document.drives {
        (drive.serial, drive.uuid) = (None, None);
        if matches!(drive.kind, DriveKind::Network | DriveKind::Fuse) {
            drive.device = drive.device.as_deref().map(without_server);
            drive.source = drive.source.as_deref().map(without_server);
        }
        drive.mount_options = drive.mount_options.as_deref().map(without_owner);
    }
    // Elsewhere a host's name may be an ordinary word ("debian", "copy").
    for argument in &mut document.copysim.arguments {
        *argument = identity.mask_host(argument);
    }
    let remove_with = document.aftermath.as_mut().and_then(|aftermath| aftermath.remove_with.take());
    let internal = |error: serde_json::Error| Error::Internal(format!("a record cannot be masked: {error}"));
    let mut value = serde_json::to_value(&*document).map_err(internal)?;
    mask_value(&mut value, &identity);
    *document = serde_json::from_value(value).map_err(internal)?;
    if let Some(aftermath) = &mut document.aftermath {
        aftermath.remove_with = remove_with.map(|command| identity.mask_command(&command));
    }
    Ok(())
}

fn mask_value(value: &mut Value, identity: &Identity) {
    match value {
        Value::String(text) => *text = identity.mask(text),
        Value::Array(values) => values.iter_mut().for_each(|value| mask_value(value, identity)),
        Value::Object(members) => members.values_mut().for_each(|value| mask_value(value, identity)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The command that removes everything of copysim's from a directory, for a shell. Bytes that are no text are made by `printf`, which every shell has.
#[must_use]
pub fn clean_command(directory: &Path) -> String {
    let mut command = "copysim clean ".to_owned();
    for chunk in directory.as_os_str().as_bytes().utf8_chunks() {
        command.push_str(&escape(chunk.valid()));
        command.extend(chunk.invalid().iter().map(|byte| format!("\"$(printf '\\{byte:03o}')\"")));
    }
    command
}

/// A text as one word of a shell: a backslash before each character that means something to it. Sign by sign, so that what is masked can be found in it.
fn escape(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@' | '%' | '=');
    // A backslash before the end of a line would take it away.
    let sign = |c: char| if c == '\n' { "'\n'".to_owned() } else { ["\\", ""][usize::from(plain(c))].to_owned() + c.encode_utf8(&mut [0; 4]) };
    text.chars().map(sign).collect()
}

/// `server:/export`, `user@server:directory` and `//server/share` without the server and the user.
fn without_server(device: &str) -> String {
    if let Some(share) = device.strip_prefix("//") {
        return format!("//HOST/{}", share.split_once('/').map_or("", |(_, path)| path));
    }
    match (device.split_once(":/"), device.split_once('@').and_then(|(_, rest)| rest.split_once(':'))) {
        (Some((_, path)), _) => format!("HOST:/{path}"),
        (None, Some((_, path))) => format!("HOST:{path}"),
        (None, None) => device.to_owned(),
    }
}

/// Mount options without the values that name a server, an address or a user.
fn without_owner(options: &str) -> String {
    const NAMING: [&str; 13] =
        ["addr", "clientaddr", "mountaddr", "ip", "srcaddr", "username", "user", "domain", "workgroup", "servername", "netbiosname", "unc", "ip6"];
    let option = |option: &str| match option.split_once('=') {
        Some((key, _)) if NAMING.contains(&key) => format!("{key}=…"),
        _ => option.to_owned(),
    };
    options.split(',').map(option).collect::<Vec<_>>().join(",")
}

/// Whether a neighbour would make what it touches part of a longer name.
fn word(neighbour: Option<char>) -> bool {
    neighbour.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Replaces `from` where the characters before and after it allow.
fn replace(text: &str, from: &str, to: &str, before: impl Fn(Option<char>) -> bool, after: impl Fn(Option<char>) -> bool) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (at, found) in text.match_indices(from) {
        let end = at + found.len();
        // A full stop that ends a sentence is no part of a name.
        let mut following = text[end..].chars();
        let next = match (following.next(), following.next()) {
            (Some('.'), None | Some(' ')) => None,
            (next, _) => next,
        };
        if before(text[..at].chars().next_back()) && after(next) {
            result.push_str(&text[done..at]);
            result.push_str(to);
            done = end;
        }
    }
    result.push_str(&text[done..]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anna() -> Identity {
        Identity { homes: vec!["/home/anna".into()], users: vec!["anna".into()], host: Some("debian".into()), serials: vec!["4C530001".into()] }
    }

    #[test]
    fn homes_users_and_serials_go_and_everything_else_stays() {
        for (text, masked) in [
            ("/home/anna", "~"),
            ("/home/anna/bench", "~/bench"),
            ("cannot open /home/anna/a.jpg (source)", "cannot open ~/a.jpg (source)"),
            ("it lies in /home/anna.", "it lies in ~."),
            ("/home/annabel/x", "/home/annabel/x"),
            ("/home/anna-old/x", "/home/anna-old/x"),
            ("/backup/home/anna/x", "/backup/home/user/x"),
            ("/media/anna/STICK", "/media/user/STICK"),
            ("/run/media/anna/STICK and /media/anna", "/run/media/user/STICK and /media/user"),
            ("/media/annas-stick", "/media/annas-stick"),
            ("anna", "anna"),
            ("usb-SanDisk_4C530001-0:0", "usb-SanDisk_SERIAL-0:0"),
            ("A4C530001", "A4C530001"),
            ("serial 4C530001, debian", "serial SERIAL, debian"),
            ("", ""),
        ] {
            assert_eq!(anna().mask(text), masked, "{text}");
        }
    }

    #[test]
    fn a_masked_command_still_works_in_the_shell_of_the_user() {
        let of = |identity: &Identity, path: &str| identity.mask_command(&clean_command(Path::new(path)));
        assert_eq!(of(&anna(), "/home/anna/my drive (old)"), "copysim clean ~/my\\ drive\\ \\(old\\)");
        assert_eq!(of(&anna(), "/media/anna/STICK"), "copysim clean /media/$USER/STICK");
        assert_eq!(of(&anna(), "/mnt/$HOME"), "copysim clean /mnt/\\$HOME");
        let spaced = Identity { homes: vec!["/srv/anna b".into()], ..Identity::default() };
        assert_eq!(of(&spaced, "/srv/anna b/x"), "copysim clean ~/x");
    }

    #[test]
    fn a_service_without_a_home_masks_no_slashes() {
        let service = Identity { homes: vec!["/".into(), String::new()], users: vec![String::new()], ..Identity::default() };
        assert_eq!(service.mask("/media//x"), "/media//x");
    }

    #[test]
    fn servers_are_hosts_too() {
        assert_eq!(without_server("nas:/photos"), "HOST:/photos");
        assert_eq!(without_server("//nas/share/x"), "//HOST/share/x");
        assert_eq!(without_server("sshfs"), "sshfs");
        assert_eq!((without_server("anna@nas:"), without_server("anna@nas:photos")), ("HOST:".to_owned(), "HOST:photos".to_owned()));
        assert_eq!(without_server("[fe80::1]:/photos"), "HOST:/photos");
        let options = "rw,vers=3.1.1,username=anna,domain=WORK,uid=1000,addr=192.168.0.7,rsize=65536";
        assert_eq!(without_owner(options), "rw,vers=3.1.1,username=…,domain=…,uid=1000,addr=…,rsize=65536");
    }
}
