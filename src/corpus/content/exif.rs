//! The EXIF segment of a picture: who took it and when, its measures, and a thumbnail (CIPA DC-008, a TIFF file inside APP1).

use jiff::civil::DateTime;

use super::scan::Picture;

/// The thumbnail that cameras make.
pub(super) const THUMBNAIL: Picture = Picture { width: 160, height: 120, intervals_per_row: 1 };

/// Where the TIFF file starts in the segment: behind the marker, the length and the identifier.
const TIFF_START: usize = 10;

/// The segment up to the first byte of the thumbnail's scan, whose `thumbnail_scan_len` bytes end the segment.
pub(super) fn segment(picture: Picture, date: DateTime, thumbnail_scan_len: u64) -> Vec<u8> {
    let thumbnail = [&[0xFF, 0xD8][..], &THUMBNAIL.tables()].concat();
    let thumbnail_len = thumbnail.len() as u32 + thumbnail_scan_len as u32;
    let date = date.strftime("%Y:%m:%d %H:%M:%S").to_string();
    // Of fixed width, so that all segments have the same length.
    let model = format!("Noise {:>5}x{:<5}", picture.width, picture.height);
    let resolution = || Value::Rational(72, 1);

    let main = |camera_at: u32| {
        vec![
            (0x010F, Value::Ascii("copysim")),
            (0x0110, Value::Ascii(&model)),
            (0x0112, Value::Short(1)),
            (0x011A, resolution()),
            (0x011B, resolution()),
            (0x0128, Value::Short(2)),
            (0x0132, Value::Ascii(&date)),
            (0x0213, Value::Short(1)),
            (0x8769, Value::Long(camera_at)),
        ]
    };
    let camera = vec![
        (0x9000, Value::Undefined(*b"0230")),
        (0x9003, Value::Ascii(&date)),
        (0x9004, Value::Ascii(&date)),
        (0x9101, Value::Undefined([1, 2, 3, 0])),
        (0xA000, Value::Undefined(*b"0100")),
        (0xA001, Value::Short(1)),
        (0xA002, Value::Long(u32::from(picture.width))),
        (0xA003, Value::Long(u32::from(picture.height))),
    ];
    let small = |thumbnail_at: u32| {
        vec![
            (0x0103, Value::Short(6)),
            (0x011A, resolution()),
            (0x011B, resolution()),
            (0x0128, Value::Short(2)),
            (0x0201, Value::Long(thumbnail_at)),
            (0x0202, Value::Long(thumbnail_len)),
        ]
    };

    let camera_at = 8 + directory_len(&main(0));
    let small_at = camera_at + directory_len(&camera);
    let thumbnail_at = small_at + directory_len(&small(0));

    let mut out = vec![0xFF, 0xE1];
    out.extend((TIFF_START as u16 - 2 + thumbnail_at as u16 + thumbnail_len as u16).to_be_bytes());
    out.extend(b"Exif\0\0II*\0\x08\0\0\0");
    directory(&mut out, &main(camera_at), small_at);
    directory(&mut out, &camera, 0);
    directory(&mut out, &small(thumbnail_at), 0);
    out.extend(thumbnail);
    out
}

/// The value of a TIFF field.
enum Value<'a> {
    Ascii(&'a str),
    Short(u16),
    Long(u32),
    Rational(u32, u32),
    Undefined([u8; 4]),
}

impl Value<'_> {
    /// The type, the count and the bytes.
    fn encode(&self) -> (u16, u32, Vec<u8>) {
        match self {
            Self::Ascii(text) => (2, text.len() as u32 + 1, [text.as_bytes(), &[0]].concat()),
            Self::Short(number) => (3, 1, number.to_le_bytes().to_vec()),
            Self::Long(number) => (4, 1, number.to_le_bytes().to_vec()),
            Self::Rational(numerator, denominator) => (5, 1, [numerator.to_le_bytes(), denominator.to_le_bytes()].concat()),
            Self::Undefined(bytes) => (7, 4, bytes.to_vec()),
        }
    }

    /// Bytes that don't fit into the field itself, made even.
    fn outside_len(&self) -> u32 {
        let len = self.encode().2.len() as u32;
        if len > 4 { len.next_multiple_of(2) } else { 0 }
    }
}

type Field<'a> = (u16, Value<'a>);

fn directory_len(fields: &[Field<'_>]) -> u32 {
    2 + 12 * fields.len() as u32 + 4 + fields.iter().map(|(_, value)| value.outside_len()).sum::<u32>()
}

/// Appends a directory to the segment: its fields in order, the place of the next directory, and the values that don't fit into fields.
fn directory(segment: &mut Vec<u8>, fields: &[Field<'_>], next: u32) {
    let start = (segment.len() - TIFF_START) as u32;
    let mut outside = Vec::new();
    let outside_start = start + 2 + 12 * fields.len() as u32 + 4;
    segment.extend((fields.len() as u16).to_le_bytes());
    for (tag, value) in fields {
        let (kind, count, mut bytes) = value.encode();
        segment.extend(tag.to_le_bytes());
        segment.extend(kind.to_le_bytes());
        segment.extend(count.to_le_bytes());
        if bytes.len() <= 4 {
            bytes.resize(4, 0);
            segment.extend(bytes);
        } else {
            segment.extend((outside_start + outside.len() as u32).to_le_bytes());
            bytes.resize(bytes.len().next_multiple_of(2), 0);
            outside.extend(bytes);
        }
    }
    segment.extend(next.to_le_bytes());
    segment.extend(outside);
}
