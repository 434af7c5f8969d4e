//! Rules of the house that no lint alone keeps: `unsafe` in one room, each block with its reason.
#![expect(clippy::disallowed_methods, reason = "tests look at files directly")]

use std::fs;
use std::path::Path;

/// The word as code: neither in a comment nor within a text or another word.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let outside_texts: String = code.split('"').step_by(2).collect();
    outside_texts.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| matches!(word, "unsafe" | "unsafe_code"))
}

#[test]
fn unsafe_code_is_in_platform_alone_and_each_block_has_its_reason() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut blocks, mut files) = (0, 0);
    for directory in ["src", "tests", "benches", "fuzz/src"] {
        let entries = walkdir::WalkDir::new(package.join(directory)).into_iter().map(Result::unwrap);
        for path in entries.map(walkdir::DirEntry::into_path).filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_unsafe(line)) {
                let place = format!("{}:{}: {line}", path.display(), number + 1);
                assert!(path.starts_with(package.join("src/platform")), "{place}");
                if !line.contains("unsafe_code") {
                    blocks += 1;
                    let comment = lines[..number]
                        .iter()
                        .rev()
                        .map(|line| line.trim())
                        .take_while(|line| line.starts_with("//"))
                        .any(|line| line.starts_with("// SAFETY: "));
                    assert!(comment, "no reason: {place}");
                }
            }
        }
    }
    assert!(blocks > 5 && files > 200, "nothing was looked at: {blocks} blocks in {files} files");
}

#[test]
fn the_word_is_found_as_code_only() {
    for line in ["unsafe { x }", "    let done = unsafe {", "#![allow(unsafe_code)]", "unsafe impl Send for X {}", "f(\"a\", unsafe { x })"] {
        assert!(is_unsafe(line), "{line}");
    }
    for line in ["// unsafe { x }", "UnsafeShutdowns = \"unsafe-shutdowns\",", "let text = \"unsafe { x }\";", "fn is_unsafe() {"] {
        assert!(!is_unsafe(line), "{line}");
    }
}
