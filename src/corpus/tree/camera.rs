//! The folders of a camera: `DCIM/100MEDIA/IMG_0001.JPG`, pictures numbered within each folder, folders of uneven size.

use super::digits;
use crate::corpus::random::uneven;

/// DCF numbers folders from 100 on.
const FIRST_FOLDER: u64 = 100;

pub fn paths(key: &[u8; 32], files: u64, files_per_folder: u64) -> impl Iterator<Item = String> + use<> {
    let folders = files.div_ceil(files_per_folder);
    let first = 10_u64.pow(digits(FIRST_FOLDER + folders, 3) as u32 - 1);
    uneven(key, "folders", folders, files).zip(first..).flat_map(|(pictures, folder)| {
        let width = digits(pictures, 4);
        (1..=pictures).map(move |picture| format!("DCIM/{folder}MEDIA/IMG_{picture:0width$}.JPG"))
    })
}
