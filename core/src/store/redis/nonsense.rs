//! Texts that make no sense: whatever a server, an operator or another program says is read or refused, and nothing breaks.

use proptest::prelude::*;

use super::wire::{decode, heard};
use crate::amount::Amount;
use crate::error::Code;
use crate::id::{Name, SlotId};

/// What answers are made of, and what comes near it.
const WORDS: [&str; 48] = [
    "done",
    "stale",
    "granted",
    "partly",
    "refused",
    "exhausted",
    "noslot",
    "claimed",
    "beyond",
    "quiet",
    "renewed",
    "released",
    "withdrawn",
    "resynced",
    "behind",
    "backwards",
    "lost",
    "ended",
    "taken",
    "gone",
    "forgotten",
    "defined",
    "changed",
    "full",
    "inspected",
    "listed",
    "undefined",
    "yes",
    "no",
    "settled",
    "before",
    "u",
    "k",
    "d",
    "e",
    "-",
    "",
    "!1",
    "=5",
    "~7",
    "~",
    "0xa0",
    "ff",
    "0",
    "1",
    "3",
    "18446744073709551615",
    "18446744073709551616",
];

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        9 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => ".{0,8}",
        1 => any::<u64>().prop_map(|number| number.to_string()),
    ];
    let gap = prop_oneof![6 => Just(" "), 1 => Just("\n"), 1 => Just("  ")];
    prop::collection::vec((word, gap), 0..24)
        .prop_map(|words| words.into_iter().map(|(word, gap)| word + gap).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_a_script_answers_is_read_or_said_to_make_no_sense(text in text(), requests in 0usize..3) {
        if let Err(error) = decode(&format!("done 1 2 0\n{text}"), requests).and(decode(&text, requests)) {
            prop_assert_eq!(error.code(), Code::Internal);
            prop_assert!(error.message().len() < 500, "{}", error);
        }
        let _ = heard(&text);
    }

    #[test]
    fn whatever_is_said_for_a_name_or_an_amount_is_taken_or_refused(text in prop_oneof![text(), ".{0,200}"]) {
        for error in [Amount::parse(&text).err(), Name::new(&text).err(), SlotId::new(&text).err()].into_iter().flatten() {
            prop_assert_eq!(error.code(), Code::InvalidArgument);
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn whatever_is_said_for_a_url_is_taken_or_refused_without_its_password(
        scheme in proptest::sample::select(&["redis", "rediss", "redis+cluster", "rediss+sentinel", "unix", "", "r%"][..]),
        user in prop_oneof![Just(""), Just("user"), Just("%zz")],
        place in prop_oneof![Just("a"), Just("[::1]:6379"), Just("a:99999"), Just("a,b:2,,c"), Just("a/b/c?db=1#x"), Just(""), Just("@@")],
        more in ".{0,20}",
    ) {
        let url = format!("{scheme}://{user}:sesame@{place}{more}");
        match super::RedisUrl::new(&url) {
            Ok(url) => {
                let shown = format!("{url:?}");
                prop_assert!(!shown.contains("sesame"), "{}", shown);
            }
            Err(error) => {
                prop_assert_eq!(error.code(), Code::InvalidArgument);
                prop_assert!(!error.message().contains("sesame"), "{}", error);
            }
        }
    }
}
