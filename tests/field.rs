//! The table of the field cases (docs/field-cases.md) and the tests that it names are one thing: each row names tests that there are, each test `field_…` stands
//! in a row, and no case is left out.
#![expect(clippy::disallowed_methods, reason = "a test reads its sources")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The cases that are to be tested, by their parts: all of the collection but those of trace replay.
const CASES: [(char, &str); 9] = [
    ('A', "01 02 04 06 07 10 11 13 14"),
    ('B', "01 03 04 05 07 08 09"),
    ('C', "01 03 04 05 07 08 09 10 13 14 16 17 18"),
    ('D', "01 04 05 06 07 09"),
    ('E', "01 02 03 06"),
    ('F', "01 04 06 08"),
    ('G', "01 03 05 07 09 10 12 13 14 15 16 18"),
    ('H', "01 02 04 06 07 08 09 11 12 14 16 17 18"),
    ('J', "01 02 04 06 08"),
];

/// How many cases must have a test; the others have a reason.
const TESTED: usize = 68;

/// A row: `| A01 | case | tests | mutation | siblings |`, or with a reason in place of tests and mutation: `| A01 | case | – | reason | |`.
struct Row {
    case: String,
    tests: Vec<String>,
    because: String,
}

fn rows(table: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let is_id = |cell: &str| cell.len() == 3 && cell.starts_with(char::is_uppercase) && cell[1..].chars().all(|digit| digit.is_ascii_digit());
        let [id, case, tests, because, _siblings] = cells.as_slice() else {
            assert!(!cells.first().is_some_and(|first| is_id(first)), "a row has five cells: {line}");
            continue;
        };
        if !is_id(id) {
            continue;
        }
        let tests = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let row = Row { case: (*case).to_owned(), tests, because: (*because).to_owned() };
        assert!(rows.insert((*id).to_owned(), row).is_none(), "{id} stands twice");
    }
    rows
}

/// The names of the functions of a source that begin with `field_`.
fn named(source: &str, found: &mut BTreeSet<String>) {
    for after in source.split("fn field_").skip(1) {
        let name: String = after.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
        found.insert(format!("field_{name}"));
    }
}

#[test]
fn field_table_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = rows(&std::fs::read_to_string(root.join("docs/field-cases.md")).unwrap());
    let mut tests = BTreeSet::new();
    let files = ["src", "tests"].into_iter().flat_map(|directory| walkdir::WalkDir::new(root.join(directory)));
    let sources = files.map(Result::unwrap).filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"));
    for source in sources.filter(|source| !source.path().ends_with("tests/field.rs")) {
        named(&std::fs::read_to_string(source.path()).unwrap(), &mut tests);
    }
    let mut wrong = Vec::new();
    let (mut tested, mut cases) = (0, 0);
    for (part, numbers) in CASES {
        for id in numbers.split(' ').map(|number| format!("{part}{number}")) {
            cases += 1;
            let Some(row) = rows.get(&id) else {
                wrong.push(format!("{id} has no row"));
                continue;
            };
            println!("{id}  {}", row.case);
            row.tests.iter().for_each(|test| println!("       {test}"));
            tested += usize::from(!row.tests.is_empty());
            if row.because.is_empty() {
                wrong.push(format!("{id} has neither a mutation nor a reason"));
            }
            let own = format!("field_{}_", id.to_lowercase());
            wrong.extend(row.tests.iter().filter(|test| !test.starts_with(&own)).map(|test| format!("{test} of {id} does not begin with {own}")));
        }
    }
    let of_table: BTreeSet<String> = rows.values().flat_map(|row| row.tests.iter().cloned()).collect();
    wrong.extend(of_table.difference(&tests).map(|test| format!("{test} stands in the table only")));
    wrong.extend(tests.difference(&of_table).map(|test| format!("{test} does not stand in the table")));
    let known: Vec<String> = CASES.iter().flat_map(|(part, numbers)| numbers.split(' ').map(move |number| format!("{part}{number}"))).collect();
    wrong.extend(rows.keys().filter(|id| !known.contains(id)).map(|id| format!("{id} is no case of the list")));
    println!("{tested} of {cases} cases have tests");
    assert_eq!(known.len(), 73);
    assert!(tested >= TESTED, "only {tested} of {cases} cases have tests");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
