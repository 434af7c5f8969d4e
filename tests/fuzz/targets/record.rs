//! Records, as texts and as records that hold anything: whatever can be read is shown in every view, without a sign that steers a terminal, and is the same when it is read again.

use std::sync::OnceLock;

use copysim::report::{self, VIEWS, card};
use copysim::result::{Document, mask, store, summary};
use serde_json::{Value, json};

use super::{Input, assert_shown, piece};
use crate::records;

pub fn texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = records::all().iter().map(|(_, record)| serde_json::to_vec(record).unwrap()).collect();
    // Short ones first: they are changed where it matters more often.
    texts.sort_by_key(Vec::len);
    texts
}

pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Document::from_json(text) {
        Ok(document) => look(&document),
        Err(error) => assert_eq!(error.exit_code(), 2, "{error}"),
    }
}

/// Every view of a record.
pub fn look(document: &Document) {
    let written = serde_json::to_string(document).unwrap();
    assert_eq!(Document::from_json(&written).as_ref().unwrap(), document);
    for view in VIEWS {
        let shown = report::render(document, view.name).unwrap();
        assert_shown(&shown);
        if view.name == "json" {
            assert_eq!(&Document::from_json(&shown).unwrap(), document);
        }
    }
    assert_shown(&card::render(document, document.label.as_slice()));
    let other = &base()[0].1;
    for (one, two) in [(document, other), (other, document), (document, document)] {
        assert_shown(&report::differences(one, two));
    }
    let name = store::file_name(document);
    assert!(name.len() < 255 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{name}");
    let _ = summary::summarise(document);
    let identity = mask::Identity { homes: vec!["/home/anna".into()], users: vec!["anna".into()], ..mask::Identity::default() };
    let mut masked = document.clone();
    if mask::mask(&mut masked, &identity).is_ok() {
        assert_shown(&report::render(&masked, "text").unwrap());
    }
    for latency in document.runs.iter().flat_map(|run| &run.phases).flat_map(|phase| &phase.latency) {
        if let Ok(histogram) = latency.histogram() {
            let _ = histogram.percentile(0.5);
        }
    }
}

fn base() -> &'static [(Value, Document)] {
    static BASE: OnceLock<Vec<(Value, Document)>> = OnceLock::new();
    BASE.get_or_init(|| records::all().into_iter().map(|(_, record)| (serde_json::to_value(&record).unwrap(), record)).collect())
}

/// Values that stand for what a record may hold and should not.
fn values() -> &'static [Value] {
    static VALUES: OnceLock<Vec<Value>> = OnceLock::new();
    VALUES.get_or_init(|| {
        let texts = [
            "",
            " ",
            "\u{1b}]0;gotcha\u{7}",
            "\u{9b}2J",
            "gpj.\u{202e}exe",
            "<script>alert(1)</script>",
            "a\nb\r\tc",
            "\u{feff}\u{200b}",
            "d0",
            "[url=x]|*`",
        ];
        let mut values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
        values.push(json!("x".repeat(3_000)));
        values.extend([
            json!(null),
            json!(true),
            json!([]),
            json!({}),
            json!(0),
            json!(1),
            json!(u64::MAX),
            json!(u64::MAX / 2),
            json!(i64::MIN),
            json!(-1),
        ]);
        values.extend([json!(1e-300), json!(1e300), json!(0.1), json!(-0.0)]);
        values
    })
}

/// All places in a value, as pointers into it.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        // Of long lists the first few and the last.
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate().filter(|(index, _)| *index < 3 || index + 1 == list.len()) {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// A record by its number, and then changes: a place, a kind of change, and what for.
pub fn changes() -> Vec<Vec<u8>> {
    let place = |record: usize, pointer: &str| {
        let mut found = Vec::new();
        places(&base()[record].0, "", &mut found);
        found.iter().position(|place| place == pointer).unwrap() as u64
    };
    let mut seeds: Vec<Vec<u8>> = (0..base().len()).map(|record| vec![record as u8]).collect();
    for (record, _) in base().iter().enumerate() {
        for (pointer, value) in [("/label", 2_u8), ("/drives/0/model", 4), ("/started_at", 0), ("/runs/0/phases/0/window", 11), ("/summary", 13)] {
            let at = place(record, pointer).to_le_bytes();
            seeds.push([&[record as u8], &at[..2], &[0, value]].concat());
        }
        let at = place(record, "/drives/0/fs_type").to_le_bytes();
        seeds.push([&[record as u8], &at[..2], &[1], piece(b"\x1b[2J text").as_slice()].concat());
        seeds.push([&[record as u8], &at[..2], &[2], &77_u64.to_le_bytes()].concat());
    }
    seeds
}

pub fn changed(data: &[u8]) {
    let mut input = Input(data);
    let base = base();
    let mut value = base[input.number(1) as usize % base.len()].0.clone();
    for _ in 0..8 {
        if input.is_empty() {
            break;
        }
        let mut found = Vec::new();
        places(&value, "", &mut found);
        let place = &found[input.number(2) as usize % found.len()];
        let kind = input.number(1);
        let new = match kind {
            1 => json!(String::from_utf8_lossy(input.piece())),
            2 => json!(input.number(8)),
            3 => json!(f64::from_bits(input.number(8))),
            4 => json!(input.number(8) as i64),
            5 => value.pointer(&found[input.number(2) as usize % found.len()]).cloned().unwrap_or_default(),
            // A list many times as long.
            6 => {
                let list = value.pointer(place).and_then(Value::as_array).cloned().unwrap_or_default();
                list.iter().cycle().take(list.len() * (1 + input.number(1) as usize)).take(5_000).cloned().collect()
            }
            _ => values()[input.number(1) as usize % values().len()].clone(),
        };
        if let Some(target) = value.pointer_mut(place).filter(|_| !place.is_empty()) {
            *target = new;
        }
    }
    text(value.to_string().as_bytes());
}
