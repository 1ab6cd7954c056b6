//! Selections of tokens, as their callers made them, held against what their source listed (rule S8).

use std::collections::{BTreeMap, HashMap};

use crate::checker::Breach;
use crate::history::Selected;
use crate::world::{Instant, ProcessId};

/// How far the source may lag behind, and a process behind the source: so long it offers what it was told of.
pub const LAG: u64 = 1_000_000;

/// All tokens, and all selections under way.
#[derive(Debug, Default)]
pub struct Selections {
    tokens: BTreeMap<String, Life>,
    calls: HashMap<u64, Call>,
    /// Which process heard of which token that it is spent, and when last.
    heard: HashMap<(ProcessId, String), Instant>,
}

#[derive(Debug)]
struct Life {
    amount: u64,
    listed: Instant,
    unlisted: Option<Instant>,
    /// When somebody said that it is spent, and whether the store kept its lock then.
    spent: Option<(Instant, bool)>,
}

#[derive(Debug)]
struct Call {
    process: ProcessId,
    began: Instant,
    target: u64,
}

impl Selections {
    /// The source lists a token.
    pub fn listed(&mut self, at: Instant, token: &str, amount: u64) {
        let life = Life { amount, listed: at, unlisted: None, spent: None };
        self.tokens.insert(token.to_owned(), life);
    }

    /// It lists it no more.
    pub fn unlisted(&mut self, at: Instant, token: &str) {
        if let Some(life) = self.tokens.get_mut(token) {
            life.unlisted = Some(at);
        }
    }

    /// Somebody spends these.
    pub fn spends(&mut self, at: Instant, tokens: &[String], answered: bool) {
        for token in tokens {
            if let Some(life) = self.tokens.get_mut(token) {
                life.spent = Some((life.spent.map_or(at, |(first, _)| first), answered));
            }
        }
    }

    /// The clock jumped ahead: locks may have ended before their time.
    pub fn jumped(&mut self) {
        self.tokens.values_mut().for_each(|life| life.spent = life.spent.map(|(at, _)| (at, false)));
    }

    /// A process hears that a token is spent.
    pub fn heard(&mut self, at: Instant, process: ProcessId, token: &str) {
        self.heard.insert((process, token.to_owned()), at);
    }

    /// A selection begins.
    pub fn began(&mut self, at: Instant, process: ProcessId, call: u64, target: u64) {
        self.calls.insert(call, Call { process, began: at, target });
    }

    /// It ends.
    pub fn ended(
        &mut self,
        at: Instant,
        number: u64,
        end: Option<&Result<Selected, String>>,
    ) -> Result<(), Breach> {
        let Some(Call { process, began, target }) = self.calls.remove(&number) else { return Ok(()) };
        match end {
            None => Ok(()),
            Some(Ok(selected)) => {
                // Clocks drift.
                let barred = |(id, _): &&(String, u64)| {
                    let heard = self.heard.get(&(process, id.clone()));
                    heard.is_some_and(|&heard| heard <= began && at < heard + LAG * 9 / 10)
                };
                if let Some((id, _)) = selected.tokens.iter().find(barred) {
                    let text =
                        format!("selection {number} has {id}, of which its process heard that it is spent");
                    return Err(Breach::new("V5", text));
                }
                self.had(number, target, selected)
            }
            Some(Err(code)) => {
                // What was there all the time, and what was there at any time.
                let there = |life: &&Life| {
                    life.listed + LAG <= began && life.unlisted.is_none() && life.spent.is_none()
                };
                let ever = |life: &&Life| {
                    life.listed <= at && life.unlisted.is_none_or(|gone| gone + 3 * LAG >= began)
                };
                let least: u64 = self.tokens.values().filter(there).map(|life| life.amount).sum();
                let most: u64 = self.tokens.values().filter(ever).map(|life| life.amount).sum();
                let false_word = match code.as_str() {
                    "insufficient" => least >= target,
                    "locked_until" | "contended" | "no_fit" => most < target,
                    _ => false,
                };
                if false_word {
                    let text = format!(
                        "selection {number} of {target} was told {code}; the wallet held {least} at least, {most} at most"
                    );
                    return Err(Breach::new("V1", text));
                }
                let known = ["timed_out", "source_unavailable", "store_unavailable"].contains(&code.as_str());
                if known || ["insufficient", "locked_until", "contended", "no_fit"].contains(&code.as_str()) {
                    return Ok(());
                }
                Err(Breach::new("T2", format!("selection {number} ended with {code}")))
            }
        }
    }

    fn had(&self, number: u64, target: u64, selected: &Selected) -> Result<(), Breach> {
        let Selected { tokens, sum, change } = selected;
        let mut ids: Vec<&str> = tokens.iter().map(|(id, _)| id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let worth: u64 = tokens.iter().map(|(_, amount)| amount).sum();
        let lies =
            tokens.iter().find(|(id, amount)| self.tokens.get(id).is_none_or(|life| life.amount != *amount));
        let exact = *sum == worth && *sum >= target && *change == *sum - target;
        if ids.len() != tokens.len() || lies.is_some() || !exact {
            let text =
                format!("selection {number} of {target} has {tokens:?}, of {sum} with change {change}");
            return Err(Breach::new("V2", text));
        }
        let kept = |id: &&(String, u64)| {
            self.tokens.get(&id.0).is_some_and(|life| matches!(life.spent, Some((_, true))))
        };
        match tokens.iter().find(kept) {
            Some((id, _)) => Err(Breach::new("V3", format!("selection {number} has {id}, which was spent"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wallet() -> Selections {
        let mut selections = Selections::default();
        selections.listed(0, "a", 3);
        selections.listed(0, "b", 4);
        selections
    }

    fn ends(mut selections: Selections, target: u64, end: Result<Selected, String>) -> bool {
        selections.began(5 * LAG, 1, 1, target);
        selections.ended(6 * LAG, 1, Some(&end)).is_ok()
    }

    fn said(target: u64, code: &str) -> bool {
        ends(wallet(), target, Err(code.to_owned()))
    }

    #[test]
    fn a_verdict_is_true_of_all_that_the_wallet_holds() {
        assert!(said(8, "insufficient") && !said(7, "insufficient"));
        assert!(said(7, "locked_until") && !said(8, "locked_until"));
        assert!(said(7, "timed_out") && !said(7, "internal"));
        let mut spent = wallet();
        spent.spends(5 * LAG, &["a".to_owned()], true);
        assert!(ends(spent, 5, Err("insufficient".to_owned())));
    }

    #[test]
    fn what_is_selected_is_worth_what_was_asked_for() {
        let had = |tokens: &[(&str, u64)], sum, change| {
            let tokens = tokens.iter().map(|&(id, amount)| (id.to_owned(), amount)).collect();
            Ok(Selected { tokens, sum, change })
        };
        assert!(ends(wallet(), 5, had(&[("a", 3), ("b", 4)], 7, 2)));
        assert!(!ends(wallet(), 5, had(&[("a", 3), ("b", 4)], 7, 1)));
        assert!(!ends(wallet(), 5, had(&[("b", 4)], 4, 0)));
        assert!(!ends(wallet(), 6, had(&[("a", 3), ("a", 3)], 6, 0)));
        let mut spent = wallet();
        spent.spends(LAG, &["a".to_owned()], true);
        assert!(!ends(spent, 3, had(&[("a", 3)], 3, 0)));
    }
}
