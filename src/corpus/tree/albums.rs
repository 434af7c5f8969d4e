//! A music collection: `Artist/Album/01 Title.mp3`.

use super::digits;
use super::names::{ADJECTIVES, NOUNS, Names};
use crate::corpus::random::{Choices, uneven};

pub fn paths(key: &[u8; 32], files: u64, songs_per_album: u64, albums_per_artist: u64) -> impl Iterator<Item = String> + use<> {
    let albums = files.div_ceil(songs_per_album);
    let artists = albums.div_ceil(albums_per_artist);
    let key = *key;
    let artist_names = move |index| Names::new(&[&ADJECTIVES, &NOUNS], ' ', artists, &key, "artists").get(index);
    let mut albums_of = uneven(&key, "albums", artists, albums);
    let mut songs_of = uneven(&key, "songs", albums, files);
    (0..artists).flat_map(move |artist| {
        let artist_name = artist_names(artist);
        let count = albums_of.next().unwrap_or(0);
        let songs: Vec<u64> = songs_of.by_ref().take(count as usize).collect();
        songs.into_iter().enumerate().flat_map(move |(album, songs)| {
            let purpose = format!("albums of {artist}");
            let album_name = Names::new(&[&NOUNS, &NOUNS], ' ', count, &key, &purpose).get(album as u64);
            let artist_name = artist_name.clone();
            let mut titles = Choices::new(&key, &format!("titles of {artist} {album}"));
            let width = digits(songs, 2);
            (1..=songs).map(move |song| {
                let adjective = ADJECTIVES[titles.below(ADJECTIVES.len() as u64) as usize];
                let noun = NOUNS[titles.below(NOUNS.len() as u64) as usize];
                format!("{artist_name}/{album_name}/{song:0width$} {adjective} {noun}.mp3")
            })
        })
    })
}
