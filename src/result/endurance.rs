//! What became of a drive that was written over again and again, and the sentence that says it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity::CapacityRange;
use super::terms::{Blame, EnduranceEnd, Found, SecondRead};
use crate::units::{Bytes, count, duration};

/// So many rounds are kept apart; where there are more, neighbours are put together.
const ROUNDS: usize = 1000;

/// What an endurance test came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endurance {
    /// What ended it.
    pub ended_by: EnduranceEnd,
    /// The nonce of its data, in hexadecimal; the data of a round have the one so many further on.
    pub nonce: String,
    /// Bytes that were written once and have to stay.
    pub static_bytes: u64,
    /// Files of them.
    pub static_files: u64,
    /// Bytes that a round writes over.
    pub round_bytes: u64,
    /// Files of them.
    pub round_files: u64,
    /// Rounds that were made to their end: written, flushed, read again and right.
    pub rounds_good: u64,
    /// All bytes that were written, static data included.
    pub written_bytes: u64,
    /// All bytes that were read again.
    pub read_bytes: u64,
    /// From the first byte written to the end, ns.
    pub elapsed_ns: u64,
    /// The limit on bytes.
    pub max_write_bytes: Option<u64>,
    /// The limit on time, ns.
    pub max_time_ns: Option<u64>,
    /// Rates and errors over the rounds, at most 1,000 stretches of one round or several.
    pub rounds: Vec<EnduranceRounds>,
    /// The first loss, where there was one.
    pub loss: Option<EnduranceLoss>,
}

/// Rounds in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnduranceRounds {
    /// The number of the first of them, from 1 on.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// How long that took, flushed, ns.
    pub write_ns: u64,
    /// Bytes read again.
    pub read_bytes: u64,
    /// How long that took, ns.
    pub read_ns: u64,
    /// Bytes of them that were not what was written.
    pub bad_bytes: u64,
    /// What the kernel reported about the drive, messages; null where its log could not be read.
    pub kernel_messages: Option<u64>,
}

/// A loss: what, where and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnduranceLoss {
    /// In which round; 0 while the static data were written.
    pub round: u64,
    /// How much had been written by then, static data included.
    pub written_bytes: u64,
    /// How long after the first byte written, ns.
    pub elapsed_ns: u64,
    /// What was found in place of the first bytes that were lost; null where the drive failed to write.
    pub found: Option<Found>,
    /// What the system answered, where it answered with an error.
    pub error: Option<String>,
    /// Whether static data were lost; else data of the round.
    pub is_static: bool,
    /// In which file.
    pub file: Option<String>,
    /// Where in it the first byte that was lost is.
    pub first_byte: Option<u64>,
    /// For `stale`: of which round the bytes are, 0 for the first ones; null where they are of another run.
    pub stale_round: Option<u64>,
    /// Bytes that were lost, by what was found.
    pub by_found: BTreeMap<Found, u64>,
    /// What was found where, at most the first 100 ranges.
    pub ranges: Vec<CapacityRange>,
    /// What a second reading from the drive showed.
    pub second_read: Option<SecondRead>,
    /// Who is to blame: the host where readings differ, the target where they agree.
    pub blame: Option<Blame>,
}

impl Endurance {
    /// Adds a round.
    pub fn add(&mut self, round: EnduranceRounds) {
        self.rounds.push(round);
        if self.rounds.len() > ROUNDS {
            let joined = self.rounds.chunks(2).filter_map(|pair| pair.iter().copied().reduce(EnduranceRounds::and));
            self.rounds = joined.collect();
        }
    }

    /// Whether the drive lost data, rather than failed to take them.
    #[must_use]
    pub fn lost_data(&self) -> bool {
        self.loss.as_ref().is_some_and(|loss| loss.found.is_some())
    }

    /// What became of the drive, in a sentence or two.
    #[must_use]
    pub fn sentence(&self) -> String {
        let took = duration(self.elapsed_ns);
        let rounds = if self.rounds_good == 1 { "1 round".to_owned() } else { format!("{} rounds", count(self.rounds_good)) };
        match &self.loss {
            Some(loss) => loss.sentence(),
            None => {
                let end = match self.ended_by {
                    EnduranceEnd::Interrupted => ", until it was interrupted",
                    EnduranceEnd::Failed => ", until something else failed",
                    EnduranceEnd::Loss | EnduranceEnd::MaxTime | EnduranceEnd::MaxWrite => "",
                };
                format!(
                    "Nothing was lost: {} were written in {rounds} within {took}{end}, and all that was read again is what was written.",
                    Bytes(self.written_bytes)
                )
            }
        }
    }
}

impl EnduranceRounds {
    /// Two stretches as one.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            first: self.first,
            count: self.count + next.count,
            written_bytes: self.written_bytes + next.written_bytes,
            write_ns: self.write_ns + next.write_ns,
            read_bytes: self.read_bytes + next.read_bytes,
            read_ns: self.read_ns + next.read_ns,
            bad_bytes: self.bad_bytes + next.bad_bytes,
            kernel_messages: self.kernel_messages.zip(next.kernel_messages).map(|(a, b)| a + b),
        }
    }
}

impl EnduranceLoss {
    /// What was lost, where and when.
    fn sentence(&self) -> String {
        let when = match self.round {
            0 => format!("while the static data were written, after {}", Bytes(self.written_bytes)),
            round => format!("in round {}, after {} had been written", count(round), Bytes(self.written_bytes)),
        };
        let lost = Bytes(self.by_found.values().sum());
        let of = if self.is_static { "static data, written once," } else { "data written in this round" };
        let place = match (&self.file, self.first_byte) {
            (Some(file), Some(byte)) => format!(", from byte {} of file {file} on", count(byte)),
            _ => String::new(),
        };
        let Some(found) = self.found else {
            return format!("The drive failed {when}: {}.", self.error.as_deref().unwrap_or("the reason was not recorded").trim_end_matches('.'));
        };
        let what = match (found, self.stale_round) {
            (Found::Stale, Some(0)) => "what was there first: the writes were lost (stale)".to_owned(),
            (Found::Stale, Some(round)) => format!("what round {} had written: later writes were lost (stale)", count(round)),
            (Found::Stale, None) => "what an earlier run had written: the writes were lost (stale)".to_owned(),
            (Found::Unreadable, _) => "nothing that can be read".to_owned(),
            (found, _) => format!("data {}", found.in_words()),
        };
        let second = match (self.second_read, self.blame) {
            (Some(read), Some(blame)) => format!(" {}: {}.", capitalised(read.in_words()), blame.in_words()),
            _ => String::new(),
        };
        format!("The drive lost {lost} of {of} {when}{place}: there is {what}.{second}")
    }
}

/// A text that begins with a capital letter.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(first: u64) -> EnduranceRounds {
        EnduranceRounds { first, count: 1, written_bytes: 10, write_ns: 3, read_bytes: 12, read_ns: 2, bad_bytes: 0, kernel_messages: Some(1) }
    }

    #[test]
    fn rounds_without_end_take_bounded_room_and_lose_nothing() {
        let mut endurance = Endurance {
            ended_by: EnduranceEnd::MaxTime,
            nonce: String::new(),
            static_bytes: 0,
            static_files: 0,
            round_bytes: 10,
            round_files: 1,
            rounds_good: 0,
            written_bytes: 0,
            read_bytes: 0,
            elapsed_ns: 0,
            max_write_bytes: None,
            max_time_ns: None,
            rounds: Vec::new(),
            loss: None,
        };
        for number in 1..=10_000 {
            endurance.add(round(number));
            assert!(endurance.rounds.len() <= ROUNDS);
        }
        let sum = |of: fn(&EnduranceRounds) -> u64| endurance.rounds.iter().map(of).sum::<u64>();
        assert_eq!((sum(|r| r.count), sum(|r| r.written_bytes), sum(|r| r.kernel_messages.unwrap())), (10_000, 100_000, 10_000));
        assert!(endurance.rounds.windows(2).all(|pair| pair[0].first + pair[0].count == pair[1].first));
    }
}
