//! Songs are real: independent decoders take every frame, at every length.

use std::collections::BTreeSet;
use std::io::Cursor;

use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;

use crate::{complaints, kind, make};

const SPEC: &str = "kind = 'mp3'";
const PATH: &str = "Some Artist/An Album/07 A Title.mp3";

/// Ordinals that have every bit rate among them, and the lengths at which a frame more fits.
fn songs() -> Vec<(u64, u64)> {
    let min = kind(SPEC).min_len();
    let lengths = (min..min + 40).chain((min..min + 1100).step_by(53)).chain([20_000, 333_333, 1_000_000]);
    lengths.enumerate().map(|(ordinal, len)| (ordinal as u64, len)).collect()
}

/// The bit rate and the number of frames; asserts that they follow one another from the tag to the end.
fn frames(bytes: &[u8]) -> (u32, usize) {
    let mut at = nanomp3::id3v2_len(bytes);
    let mut count = 0;
    let mut rates = BTreeSet::new();
    for frame in nanomp3::frames(bytes) {
        assert_eq!(frame.offset, at);
        assert_eq!((frame.sample_rate, frame.layer, frame.samples), (44_100, 3, 1152));
        rates.insert(frame.bitrate_kbps);
        at += frame.data.len();
        count += 1;
    }
    assert_eq!(at, bytes.len());
    assert_eq!(rates.len(), 1);
    (rates.into_iter().next().unwrap(), count)
}

#[test]
fn frames_fill_the_file_from_the_tag_to_the_end() {
    let mut rates = BTreeSet::new();
    for (ordinal, len) in songs() {
        let bytes = make(SPEC, ordinal, PATH, len);
        let (rate, count) = frames(&bytes);
        assert!(count >= 8);
        // What is left over for the tag is less than a frame.
        assert!(nanomp3::id3v2_len(&bytes) < 200 + 144 * rate as usize * 1000 / 44_100 + 1, "{len}");
        rates.insert(rate);
    }
    assert_eq!(rates, [192, 256, 320].into());
}

#[test]
fn decoders_take_every_frame() {
    for (ordinal, len) in songs() {
        let bytes = make(SPEC, ordinal, PATH, len);
        let (rate, count) = frames(&bytes);
        let decoded = nanomp3::decode_all::<f32>(&bytes);
        assert!(!decoded.format_changed);
        assert_eq!((decoded.avg_bitrate_kbps, decoded.samples.len()), (rate, count * 1152 * 2));
        assert!(decoded.samples.iter().all(|&sample| sample == 0.0), "silence");
        assert_eq!(decoded_by_symphonia(bytes), count);
    }
}

fn decoded_by_symphonia(bytes: Vec<u8>) -> usize {
    let stream = MediaSourceStream::new(Box::new(Cursor::new(bytes)), Default::default());
    let mut format = symphonia::default::get_probe().probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default()).unwrap();
    let track = format.default_track(TrackType::Audio).unwrap();
    let parameters = track.codec_params.as_ref().unwrap().audio().unwrap();
    let mut decoder = symphonia::default::get_codecs().make_audio_decoder(parameters, &AudioDecoderOptions::default()).unwrap();
    let mut packets = 0;
    while let Some(packet) = format.next_packet().unwrap() {
        assert_eq!(decoder.decode(&packet).unwrap().frames(), 1152);
        packets += 1;
    }
    packets
}

#[test]
fn any_path_makes_a_song() {
    let long = format!("{0}/{0}/{0}.mp3", "long ö ".repeat(40));
    for path in ["", "a", "/", "a/b/", "12", "x/y/z/12.mp3", "\u{0}\u{1}/\n.mp3", &long] {
        frames(&make(SPEC, 1, path, kind(SPEC).min_len()));
    }
}

#[test]
fn nothing_but_a_header_looks_like_one() {
    let bytes = make(SPEC, 2, PATH, 1_000_000);
    assert_eq!(bytes.iter().filter(|&&byte| byte == 0xFF).count(), frames(&bytes).1);
}

#[test]
fn programs_take_songs_without_a_word() {
    let directory = tempfile::tempdir().unwrap();
    for (ordinal, len) in songs().into_iter().step_by(7).chain([(100, 5_427_000), (101, 12_345_678)]) {
        let file = directory.path().join(format!("{ordinal}.mp3"));
        std::fs::write(&file, make(SPEC, ordinal, PATH, len)).unwrap();
        for (program, arguments) in [("mpg123", &["-q", "-t", "FILE"][..]), ("ffmpeg", &["-nostdin", "-v", "error", "-i", "FILE", "-f", "null", "-"])]
        {
            if let Some(said) = complaints(program, arguments, &file) {
                assert_eq!(said, "", "{program} on {len} bytes");
            }
        }
    }
}
