//! A cache: files named by a hash, in two levels of folders by its first digits, `3f/a9/06d1…`.

use crate::corpus::random::Choices;

pub fn paths<'a>(key: &[u8; 32], files: u64, suffix: &'a str) -> impl Iterator<Item = String> + use<'a> {
    let mut choices = Choices::new(key, "hashes");
    // Each file has a stretch of its own of all the hashes there are, so that they ascend.
    let start = move |index: u64| (u128::from(index) << 64) / u128::from(files.max(1));
    (0..files).map(move |index| {
        let stretch = u64::try_from(start(index + 1) - start(index)).unwrap_or(u64::MAX);
        let hash = format!("{:016x}{:016x}", start(index) + u128::from(choices.below(stretch)), choices.bits());
        format!("{}/{}/{}{suffix}", &hash[..2], &hash[2..4], &hash[4..])
    })
}
