//! The files of a program: `libcache-loader.so.5`, `config/map/cache-loader.xml`, named by two words in one folder or in folders named by one.

use super::names::{CODE_WORDS, Names};
use crate::corpus::random::{Choices, uneven};

pub fn paths<'a>(
    key: &[u8; 32],
    files: u64,
    prefix: &'a str,
    endings: &'a [String],
    files_per_folder: Option<u64>,
) -> impl Iterator<Item = String> + use<'a> {
    let key = *key;
    let folders = files_per_folder.map_or(1, |mean| files.div_ceil(mean));
    uneven(&key, "folders", folders, files).zip(0..).flat_map(move |(count, folder)| {
        let place = match files_per_folder {
            None => String::new(),
            Some(_) => format!("{}/", Names::new(&[&CODE_WORDS], '-', folders, &key, "folders").get(folder)),
        };
        let names = Names::new(&[&CODE_WORDS, &CODE_WORDS], '-', count, &key, &format!("names {folder}"));
        let mut choices = Choices::new(&key, &format!("endings {folder}"));
        // No word begins with another, so that whatever ends a name leaves the order as it is.
        (0..count).map(move |file| {
            let ending = &endings[usize::try_from(choices.below(endings.len() as u64)).unwrap_or(0)];
            format!("{place}{prefix}{}{ending}", names.get(file))
        })
    })
}
