//! Two results in one table: what each part took with either, and how many times as long it took with the second.

use super::format::{UNKNOWN, number, or_unknown};
use super::group::{Group, groups};
use super::printable::{printable, wrap};
use super::tables::table;
use super::text::WIDTH;
use crate::result::{Document, Summary};

/// The table, with a final newline; `None` where they have no part in common.
#[must_use]
pub fn beside(first: &Document, second: &Document) -> Option<String> {
    let (of_first, of_second) = (groups(first), groups(second));
    let mut names: Vec<String> = of_first.iter().filter(|group| group.measures()).map(Group::title).collect();
    if !of_second.iter().any(|group| names.contains(&group.title())) {
        return None;
    }
    let only_second = of_second.iter().filter(|group| group.measures()).map(Group::title).filter(|name| !names.contains(name)).collect::<Vec<_>>();
    names.extend(only_second);
    let took = |groups: &[Group<'_>], name: &str| {
        let group = groups.iter().find(|group| group.title() == name)?;
        time(group).map(|summary| summary.median)
    };
    let seconds = |ns: Option<f64>| or_unknown(ns, |ns| number(ns / 1e9));
    let rows = names.iter().map(|name| {
        let (a, b) = (took(&of_first, name), took(&of_second, name));
        let times = a.zip(b).filter(|(a, _)| *a > 0.0).map_or_else(|| UNKNOWN.to_owned(), |(a, b)| format!("{} ×", number(b / a)));
        vec![printable(name), seconds(a), seconds(b), times]
    });
    let head =
        wrap(&format!("A is {}; B is {}. Medians, in seconds; B / A says how many times as long B takes.", called(first), called(second)), WIDTH, 0);
    Some(format!("BESIDE EACH OTHER\n{head}\n{}\n", table(&["", "A s", "B s", "B / A"], &[0], rows.collect())))
}

/// The time that a part is judged by: until it was ready, or until its data were safe.
fn time<'d>(group: &Group<'d>) -> Option<&'d Summary> {
    ["ready_ns", "durable_ns"].into_iter().find_map(|metric| group.summary(metric))
}

/// What is measured: by its label, or by its drive.
fn called(document: &Document) -> String {
    let target = document.scenarios.first().and_then(|scenario| document.drive(scenario.roles.target.as_deref()?));
    let drive = target.map(|drive| super::text::drive(document, drive));
    printable(document.label.as_deref().or(drive.as_deref()).unwrap_or("a drive that is not known"))
}
