//! Programs are ELF files to those who look at their beginning.

use crate::{complaints, make};

#[test]
fn readers_of_elf_take_the_header_and_the_segments() {
    for (ordinal, len) in [(0, 400), (1, 4096), (2, 20_000), (3, 1_000_000)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), make("kind = 'program'", ordinal, "lib/liba.so.5", len)).unwrap();
        if let Some(said) = complaints("readelf", &["--wide", "--file-header", "--program-headers", "FILE"], file.path()) {
            assert_eq!(said, "", "{len}");
        }
    }
}

#[test]
fn a_file_is_known_as_a_shared_object_for_a_machine_of_64_bits() {
    let bytes = make("kind = 'program'", 5, "bin/map-cache", 100_000);
    assert_eq!(bytes[..7], *b"\x7FELF\x02\x01\x01");
    // ET_DYN, EM_AMD64, EV_CURRENT.
    assert_eq!(bytes[16..24], [3, 0, 62, 0, 1, 0, 0, 0]);
}

#[test]
fn what_is_too_short_for_a_header_is_its_beginning() {
    let whole = make("kind = 'program'", 5, "bin/map-cache", 4096);
    for len in [0, 1, 63, 64] {
        assert_eq!(make("kind = 'program'", 5, "bin/map-cache", len)[..24.min(len as usize)], whole[..24.min(len as usize)]);
    }
}
