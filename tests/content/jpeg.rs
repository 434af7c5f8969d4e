//! Pictures are real: independent decoders take them without complaint, at every length.

use crate::{MTIME, complaints, kind, make};

const SPEC: &str = "kind = 'jpeg'";
const PATH: &str = "DCIM/100NOISE/IMG_0001.JPG";

/// Width, height, restart intervals, MCUs of one.
const PICTURES: [(u64, u64, u64, u64); 6] = [
    (1600, 1200, 4 * 75, 25),
    (2048, 1536, 4 * 96, 32),
    (2592, 1944, 6 * 122, 27),
    (3264, 2448, 6 * 153, 34),
    (4000, 3000, 10 * 188, 25),
    (8000, 6000, 20 * 375, 25),
];

/// The length of a file whose blocks all have so many bytes.
fn len_of(picture: (u64, u64, u64, u64), block: u64) -> u64 {
    let scan = |(_, _, intervals, mcus): (u64, u64, u64, u64), block| intervals * (mcus * 6 * block + 2);
    kind(SPEC).min_len() - scan(PICTURES[0], 10) + scan(picture, block)
}

/// Decodes with both crates, the one as strict as it can be; the measures that they agree on.
fn decode(bytes: &[u8]) -> (u64, u64) {
    let options = zune_jpeg::zune_core::options::DecoderOptions::new_safe().set_strict_mode(true);
    let mut zune = zune_jpeg::JpegDecoder::new_with_options(zune_jpeg::zune_core::bytestream::ZCursor::new(bytes), options);
    let pixels = zune.decode().unwrap();
    let (width, height) = zune.dimensions().unwrap();
    assert_eq!(pixels.len(), width * height * 3);
    let mut other = jpeg_decoder::Decoder::new(bytes);
    assert_eq!(other.decode().unwrap().len(), pixels.len());
    assert_eq!(other.info().map(|info| (usize::from(info.width), usize::from(info.height))), Some((width, height)));
    (width as u64, height as u64)
}

#[test]
fn decoders_take_every_length() {
    let min = kind(SPEC).min_len();
    let [small, second, ..] = PICTURES;
    let mut expected = vec![(min, small), (min + 1, small), (min + 149, small), (min + 150, small), (1_070_000, second)];
    for block in [11, 15] {
        let at = len_of(small, block);
        expected.extend([(at - 1, small), (at, small), (at + 1, small)]);
    }
    for pair in PICTURES[..4].windows(2) {
        let at = len_of(pair[1], 12);
        expected.extend([(at - 1, pair[0]), (at, pair[1]), (at + 1, pair[1])]);
    }
    for (len, (width, height, ..)) in expected {
        assert_eq!(decode(&make(SPEC, len, PATH, len)), (width, height), "{len} bytes");
    }
}

#[test]
fn decoders_take_large_files() {
    for (len, picture) in [(12_000_000, PICTURES[4]), (50_000_000, PICTURES[5])] {
        assert_eq!(decode(&make(SPEC, len, PATH, len)), (picture.0, picture.1), "{len} bytes");
    }
}

#[test]
fn most_of_a_file_is_the_scan() {
    for len in [kind(SPEC).min_len(), 1_000_000, 10_000_000] {
        let bytes = make(SPEC, 1, PATH, len);
        // The last start of scan: a thumbnail has one, too, in front of it.
        let start = bytes.windows(4).rposition(|window| window == [0xFF, 0xDA, 0, 12]).unwrap() as u64;
        assert!(start * 50 < len, "{start} of {len}");
    }
}

#[test]
fn programs_take_pictures_without_a_word() {
    let directory = tempfile::tempdir().unwrap();
    let min = kind(SPEC).min_len();
    for (index, len) in [min, min + 1, 600_001, 1_070_000, len_of(PICTURES[1], 12), 3_000_000, 9_000_001, 50_000_000].into_iter().enumerate() {
        let file = directory.path().join(format!("{index}.jpg"));
        std::fs::write(&file, make(SPEC, index as u64, PATH, len)).unwrap();
        for (program, arguments) in
            [("djpeg", &["-outfile", "/dev/null", "FILE"][..]), ("ffmpeg", &["-nostdin", "-v", "warning", "-i", "FILE", "-f", "null", "-"])]
        {
            if let Some(said) = complaints(program, arguments, &file) {
                assert_eq!(said, "", "{program} on {len} bytes");
            }
        }
    }
}

#[test]
fn the_tags_of_the_camera_are_there() {
    let bytes = make(SPEC, 1, PATH, 1_070_000);
    let mut decoder = jpeg_decoder::Decoder::new(&bytes[..]);
    decoder.read_info().unwrap();
    let exif = decoder.exif_data().unwrap();
    let [main, small] = directories(exif);
    let camera = directory(exif, number(&main, 0x8769) as usize).0;
    assert_eq!(text(&main, 0x010F), "copysim");
    assert_eq!(text(&main, 0x0110), "Noise  2048x1536 ");
    assert_eq!(number(&main, 0x0112), 1, "orientation");
    assert_eq!(text(&camera, 0x9003), "2023:11:14 22:13:20", "{MTIME}");
    assert_eq!((number(&camera, 0xA002), number(&camera, 0xA003)), (2048, 1536));
    let start = number(&small, 0x0201) as usize;
    let thumbnail = &exif[start..start + number(&small, 0x0202) as usize];
    assert_eq!(decode(thumbnail), (160, 120));
}

type Fields = Vec<(u16, Vec<u8>)>;

fn directories(exif: &[u8]) -> [Fields; 2] {
    assert_eq!(exif[..4], *b"II*\0");
    let (main, next) = directory(exif, 8);
    let (small, end) = directory(exif, next);
    assert_eq!(end, 0);
    [main, small]
}

/// The fields of a TIFF directory, and where the next one is.
fn directory(exif: &[u8], at: usize) -> (Fields, usize) {
    let short = |at: usize| u16::from_le_bytes([exif[at], exif[at + 1]]);
    let long = |at: usize| u32::from_le_bytes([exif[at], exif[at + 1], exif[at + 2], exif[at + 3]]) as usize;
    let count = usize::from(short(at));
    let fields: Fields = (0..count)
        .map(|index| {
            let field = at + 2 + 12 * index;
            let size = [0, 1, 1, 2, 4, 8, 0, 1][usize::from(short(field + 2))] * long(field + 4);
            let value = if size <= 4 { field + 8 } else { long(field + 8) };
            (short(field), exif[value..value + size].to_vec())
        })
        .collect();
    assert!(fields.is_sorted_by_key(|(tag, _)| *tag));
    (fields, long(at + 2 + 12 * count))
}

fn value(fields: &Fields, tag: u16) -> &[u8] {
    &fields.iter().find(|(each, _)| *each == tag).unwrap_or_else(|| panic!("no tag {tag:#06X}")).1
}

fn text(fields: &Fields, tag: u16) -> &str {
    std::str::from_utf8(value(fields, tag).strip_suffix(&[0]).unwrap()).unwrap()
}

fn number(fields: &Fields, tag: u16) -> u32 {
    value(fields, tag).iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// Beyond the largest picture the rest of a file is application segments.
#[test]
fn files_of_many_gigabytes_are_segments_from_start_to_scan() {
    for len in [900_000_000, 4_700_000_000, 4_700_100_000, 20_000_000_000_u64] {
        let kind = kind(SPEC);
        let key = crate::test_key(0);
        let read = |at: u64, n: usize| {
            let mut bytes = vec![0; n];
            kind.fill(&copysim::corpus::content::FileBytes { key: &key, ordinal: 1, path: PATH, len, mtime: MTIME }, at, &mut bytes);
            bytes
        };
        assert_eq!(read(0, 2), [0xFF, 0xD8]);
        let mut at = 2;
        let mut markers = Vec::new();
        loop {
            let head = read(at, 9);
            assert_eq!(head[0], 0xFF, "{len}: at {at}");
            markers.push(head[1]);
            if head[1] == 0xC0 {
                assert_eq!(head[5..], [0xBB, 0x80, 0xFA, 0x00], "64,000 by 48,000");
            }
            at += 2 + u64::from(u16::from_be_bytes([head[2], head[3]]));
            if head[1] == 0xDA {
                break;
            }
        }
        let fillers = markers.iter().filter(|&&marker| marker == 0xE9).count() as u64;
        assert_eq!(markers.len() as u64, fillers + 6);
        let scan = len - at;
        assert!(fillers == (len - 7000).saturating_sub(scan).div_ceil(65_537).max(1), "{len}: {fillers}");
        assert!(scan >= len.min(4_600_000_000) * 99 / 100, "{len}: scan of {scan}");
        assert_eq!(read(len - 2, 2), [0xFF, 0xD9]);
    }
}
