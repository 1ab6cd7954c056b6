//! The transcripts of selections that every language replays: up to date, replayed by the machine, and with every word.

use std::collections::BTreeSet;

use leasehold::tokens::{STRATEGIES, transcript};
use leasehold_agreement::scenarios::{folder_of_tokens, of_tokens};
use leasehold_agreement::{to_json, to_value};
use serde_json::Value as Json;

/// The name and the content of every transcript that is kept.
fn vectors() -> Vec<(String, Json)> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    std::fs::read_dir(folder_of_tokens()).expect("the folder").map(read).collect()
}

#[test]
fn they_are_what_the_scenarios_tell() {
    let advice = "run: cargo run -p leasehold-agreement --bin vectors -- --write";
    let (told, kept) = (of_tokens(), vectors());
    assert_eq!(kept.len(), told.len(), "{advice}");
    for scenario in told {
        let path = folder_of_tokens().join(format!("{}.json", scenario.name()));
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == scenario.text(), "{} is not up to date; {advice}", scenario.name());
    }
}

#[test]
fn the_machine_replays_them() {
    for (name, vector) in vectors() {
        assert_eq!(vector["name"], name);
        let answers = transcript::replay(&to_value(&vector["steps"])).expect("steps");
        assert_eq!(to_json(&answers), vector["answers"], "{name}");
    }
}

/// Of each step, event, strategy and answer there is one at least.
#[test]
fn they_leave_nothing_out() {
    fn words(json: &Json, found: &mut BTreeSet<String>) {
        match json {
            Json::Object(entries) => entries.iter().for_each(|(key, value)| {
                if let ("step" | "event" | "strategy" | "reply", Json::String(word)) = (&**key, value) {
                    found.insert(format!("{key} {word}"));
                }
                words(value, found);
            }),
            Json::Array(items) => items.iter().for_each(|item| words(item, found)),
            Json::Number(number) => panic!("{number} is not text"),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    vectors().iter().for_each(|(_, vector)| words(vector, &mut found));
    let steps = [
        "begin",
        "next_page",
        "page",
        "added",
        "removed",
        "live",
        "put_back",
        "spent",
        "count",
        "choose",
        "select",
        "poll",
        "hear",
    ];
    let events =
        ["fetched", "claimed", "unanswered", "verified", "given_back", "paused", "called", "abandoned"];
    let replies = [
        "fetch",
        "claim",
        "verify",
        "give_back",
        "pause",
        "selected",
        "insufficient",
        "locked",
        "contended",
        "timed_out",
        "no_fit",
        "chosen",
        "nothing",
    ];
    for (key, all) in
        [("step", &steps[..]), ("event", &events), ("strategy", &STRATEGIES), ("reply", &replies)]
    {
        for word in all {
            assert!(found.contains(&format!("{key} {word}")), "no vector has the {key} {word}");
        }
    }
}
