//! The shape of a real folder: so many directories and files at each depth, under neutral names.

use super::digits;

/// `directories[depth]` and `files[depth]` as scanned; the number of files is scaled to `total`, the directories with it.
pub fn paths(directories: &[u64], files: &[u64], total: u64) -> impl Iterator<Item = String> + use<> {
    let scanned: u64 = files.iter().sum();
    let mut levels = Vec::new();
    let (mut passed, mut given) = (0_u128, 0_u64);
    for (depth, (&directories, &files)) in directories.iter().zip(files).enumerate() {
        passed += u128::from(files);
        let upto = u64::try_from(passed * u128::from(total) / u128::from(scanned.max(1))).unwrap_or(u64::MAX);
        let scaled = u64::try_from(u128::from(directories) * u128::from(total) / u128::from(scanned.max(1))).unwrap_or(u64::MAX);
        levels.push(Level { directories: if depth == 0 { 1 } else { scaled.max(1) }, files: upto - given });
        given = upto;
    }
    Walk { levels, stack: vec![Frame::default()] }
}

struct Level {
    directories: u64,
    files: u64,
}

#[derive(Default)]
struct Frame {
    path: String,
    /// Which directory of its depth this is, in order.
    index: u64,
    /// How many of its subdirectories were visited.
    visited: u64,
    /// How many of its files were given.
    given: u64,
}

/// Depth first: the subdirectories (`d…`) of a directory stand before its files (`f…`).
struct Walk {
    levels: Vec<Level>,
    stack: Vec<Frame>,
}

/// The part of `total` things that falls to the `index`-th of `groups`, and where it starts.
fn part(total: u64, groups: u64, index: u64) -> (u64, u64) {
    let upto = |index: u64| u64::try_from(u128::from(total) * u128::from(index) / u128::from(groups)).unwrap_or(u64::MAX);
    (upto(index), upto(index + 1) - upto(index))
}

impl Iterator for Walk {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let depth = self.stack.len().checked_sub(1)?;
            let level = &self.levels[depth];
            let below = self.levels.get(depth + 1).map_or(0, |level| level.directories);
            let frame = &mut self.stack[depth];
            let (first, subdirectories) = part(below, level.directories, frame.index);
            if frame.visited < subdirectories {
                let width = digits(subdirectories, 2);
                let path = format!("{}d{:0width$}/", frame.path, frame.visited + 1);
                let index = first + frame.visited;
                frame.visited += 1;
                self.stack.push(Frame { path, index, ..Frame::default() });
                continue;
            }
            let (_, files) = part(level.files, level.directories, frame.index);
            if frame.given < files {
                frame.given += 1;
                let width = digits(files, 2);
                return Some(format!("{}f{:0width$}.bin", frame.path, frame.given));
            }
            self.stack.pop();
        }
    }
}
