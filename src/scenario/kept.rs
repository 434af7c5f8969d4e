//! What the target keeps of a file besides its bytes, looked at on one that was copied: some file systems accept a change of permissions and forget it.

use std::path::Path;

use super::copy::{CopySource, Job};
use crate::corpus::times::Times;
use crate::platform::Stat;
use crate::result::{Flag, Phase, flags};
use crate::units::files;

/// The permissions of files that are made while they are written.
const GENERATED: u32 = 0o644;

/// Says in the record what was carried over, and raises a flag where something was not. `lost` files could not be given their time or permissions at all.
pub fn tell(job: &Job<'_>, lost: u64, phase: &mut Phase) {
    let Some(engine) = phase.engine.as_mut().filter(|engine| engine.preserve.is_some()) else { return };
    let Some((has_time, has_mode)) = look(job) else {
        // Where it can't be looked at it is not known.
        engine.preserve = None;
        return;
    };
    let attributes = [("mtime", has_time), ("permissions", has_mode)];
    engine.preserve = Some(attributes.iter().filter(|(_, kept)| *kept).map(|(name, _)| (*name).to_owned()).collect());
    phase.flags.extend(flag(&attributes, lost));
}

fn flag(attributes: &[(&str, bool)], lost: u64) -> Option<Flag> {
    let missing: Vec<&str> = attributes.iter().filter(|(_, kept)| !kept).map(|(name, _)| *name).collect();
    let refused = (lost > 0).then(|| format!("it refused to for {}", files(lost)));
    let figures: Vec<String> = (!missing.is_empty()).then(|| missing.join(" and ")).into_iter().chain(refused).collect();
    (!figures.is_empty()).then(|| flags::ATTRIBUTES_LOST.flag(Some(&figures.join("; ")), None))
}

/// Whether the first copied file has its time and its permissions.
fn look(job: &Job<'_>) -> Option<(bool, bool)> {
    let files = job.watched.system.files;
    let meta = job.from.manifest().corpus.files().ok()?.next()?;
    let path = Path::new(&meta.path);
    let (mode, mtime) = match job.from {
        CopySource::Staged { staged, .. } => {
            let Stat { mode, mtime, .. } = files.stat_at(&staged.tree, path).ok()?;
            (mode, mtime.0)
        }
        CopySource::Generated(_) => (GENERATED, meta.mtime),
    };
    let copy = files.stat_at(&job.run.dir, path).ok()?;
    let mut times = Times::default();
    times.add(copy.mtime.0, mtime);
    Some((times.agree(), copy.mode & 0o777 == mode & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_g18_what_is_not_kept_is_named_and_nothing_else_is() {
        let said = |time, mode, lost| flag(&[("mtime", time), ("permissions", mode)], lost).map(|flag| flag.message);
        assert_eq!(said(true, true, 0), None);
        assert!(said(true, false, 0).unwrap().ends_with(": permissions"));
        assert!(said(false, false, 3).unwrap().ends_with(": mtime and permissions; it refused to for 3 files"));
        assert!(said(true, true, 1).unwrap().ends_with(": it refused to for 1 file"));
    }
}
