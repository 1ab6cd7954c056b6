//! What the script keeps of a pool, read as it lies in the server: it must be of one mind.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::Micros;
use leasehold_embedded::{EmbeddedRedis, Resp};

/// The scores of one queue, and of what comes due behind the nine of them.
const QUEUE: u64 = 1 << 48;
const WHEN_DUE: u64 = 9 * QUEUE;
const WHEN_LAPSED: u64 = 20 * QUEUE;
const DOUBT: u64 = 8;

/// The words and numbers of a packed record, in their order.
struct Packed<'a>(&'a [u8]);

impl Packed<'_> {
    fn letter(&mut self) -> char {
        let (&letter, rest) = self.0.split_first().expect("a letter");
        self.0 = rest;
        char::from(letter)
    }

    fn double(&mut self) -> f64 {
        let (number, rest) = self.0.split_first_chunk().expect("a number");
        self.0 = rest;
        f64::from_le_bytes(*number)
    }

    fn number(&mut self) -> u64 {
        let number = self.double();
        assert!((0.0..9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0, "{number}");
        number as u64
    }

    fn word(&mut self) -> String {
        let end = self.0.iter().position(|&byte| byte == 0).expect("an end");
        let word = String::from_utf8(self.0[..end].to_vec()).expect("text");
        self.0 = &self.0[end + 1..];
        word
    }
}

fn pairs(reply: &Resp) -> impl Iterator<Item = (String, &[u8])> {
    reply
        .as_array()
        .expect("a list")
        .chunks(2)
        .map(|pair| (pair[0].as_text().expect("text").to_owned(), pair[1].as_bytes().expect("bytes")))
}

/// Sees to it that every slot of a pool is where its record says and nowhere else, and that the counts are right.
///
/// # Panics
/// If they are not, saying what.
pub fn audit(redis: &mut EmbeddedRedis, prefix: &str) {
    let key = |part: &str| format!("{prefix}{part}");
    let meta = redis.command(&[b"GET", key("meta").as_bytes()]);
    let Some(meta) = meta.as_bytes() else {
        assert_eq!(
            redis.command(&[b"EXISTS", key("slots").as_bytes()]),
            Resp::Int(0),
            "slots without a pool"
        );
        return;
    };
    let mut meta = Packed(meta);
    assert_eq!(meta.word(), "4");
    let [_, _, _, _, _, _, top, _, arrived, certain, doubtful, heaviest, tickets, namers] =
        [(); 14].map(|()| meta.number());
    meta.word();
    let [_, due, room] = [(); 3].map(|()| meta.number());
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    let all = redis.command(&[b"ZRANGE", key("places").as_bytes(), b"0", b"-1", b"WITHSCORES"]);
    for (id, score) in pairs(&all) {
        let score: f64 = std::str::from_utf8(score).expect("text").parse().expect("a number");
        places.insert(id, score as u64);
    }
    // Behind all stands what keeps the server from packing the places into one list.
    let guard = places.iter().find(|(_, score)| **score == u64::MAX).expect("a guard").0.clone();
    assert!(guard.len() > 64, "{guard}");
    places.remove(&guard);
    for (id, place) in &places {
        assert!(
            !(WHEN_DUE + 1..WHEN_LAPSED).contains(place) || due <= place - WHEN_DUE,
            "{id}: due before {due}"
        );
    }
    let (mut counts, mut arrivals, mut offered_to) = ([0, 0], BTreeMap::new(), BTreeSet::new());
    let slots = redis.command(&[b"HGETALL", key("slots").as_bytes()]);
    let slots_in_all = slots.as_array().map_or(0, <[Resp]>::len) as u64 / 2;
    assert!(room <= 1_000_000 - slots_in_all, "room for {room} beside {slots_in_all}");
    for (id, record) in pairs(&slots) {
        let mut record = Packed(record);
        let [mode, state, kind] = [(); 3].map(|()| record.letter());
        let [weight, _, fence, since, ends, hold, _, _, _]: [Micros; 9] = [(); 9].map(|()| record.number());
        let rank = record.double();
        assert!(rank.fract() == 0.0 && rank.abs() <= 32_768.0, "{id}: priority {rank}");
        let agreed = record.number();
        let [holder, _, claimant] = [(); 3].map(|()| record.word());
        let place = places.remove(&id);
        let told = format!("{id}: mode {mode}, state {state}, kind {kind}, weight {weight}, at {place:?}");
        assert!(fence <= top, "{told}: fence {fence} above {top}");
        match state {
            'r' => {
                assert_eq!(mode, 'e', "{told}");
                let queue = if kind == 'd' { DOUBT } else { u64::from(weight.ilog2()) };
                let place = place.expect(&told);
                assert_eq!(place / QUEUE, queue, "{told}");
                assert!(place % QUEUE < arrived, "{told}: arrived {arrived}");
                assert!(queue == DOUBT || queue <= heaviest, "{told}: heaviest {heaviest}");
                assert!(arrivals.insert(place % QUEUE, id).is_none(), "{told}: two arrivals at once");
                counts[usize::from(kind == 'd')] += 1;
            }
            'l' => {
                assert_eq!(place, Some(WHEN_DUE + ends), "{told}");
                assert!(claimant.is_empty() || ends <= agreed, "{told}: claimed, from {agreed}");
                // One that is stolen without a wait ends as it begins.
                assert!(since <= ends && (hold == 0 || ends <= hold), "{told}: {since} {ends} {hold}");
            }
            'h' => {
                assert!(matches!(mode, 'e' | 'p'), "{told}");
                assert_eq!(place, Some(WHEN_DUE + ends), "{told}");
                offered_to.insert(holder);
            }
            'c' => {
                // What is removed is there for its doubt alone.
                assert!(matches!(mode, 'e' | 'p') || (mode, kind) == ('r', 'd'), "{told}");
                assert_eq!(place, Some(WHEN_DUE + ends), "{told}");
            }
            'o' => assert_eq!((mode, place), ('x', None), "{told}"),
            other => panic!("{told}: no state is {other}"),
        }
    }
    assert_eq!([certain, doubtful], counts, "the counts of certain and doubtful slots");
    match audit_line(redis, prefix, &mut places, &mut offered_to) {
        // They expire where nobody asks for long; what is left of them goes with the next envelope.
        [0, 0] => places.retain(|id, _| !id.starts_with('%')),
        waiting if offered_to.is_empty() => assert_eq!([tickets, namers], waiting, "the counts of tickets"),
        // One that expired is counted until what was offered to it is put back.
        [standing, _] => assert!(tickets >= standing, "expired: {offered_to:?}"),
    }
    assert!(places.is_empty(), "places of no slot: {places:?}");
}

/// Sees to it that every ticket stands in its lines, or has an offer, and nothing else stands there; leaves those holders
/// that are offered something and have no ticket.
fn audit_line(
    redis: &mut EmbeddedRedis,
    prefix: &str,
    places: &mut BTreeMap<String, u64>,
    offered_to: &mut BTreeSet<String>,
) -> [u64; 2] {
    let all = redis.command(&[b"ZRANGE", format!("{prefix}line").as_bytes(), b"0", b"-1"]);
    let text = |reply: &Resp| reply.as_text().expect("text").to_owned();
    let mut line: BTreeSet<String> = all.as_array().expect("a list").iter().map(text).collect();
    let tickets = redis.command(&[b"HGETALL", format!("{prefix}tickets").as_bytes()]);
    let [mut count, mut namers] = [0, 0];
    for (holder, record) in pairs(&tickets) {
        let record = std::str::from_utf8(record).expect("text");
        let words: Vec<&str> = record.split_ascii_whitespace().collect();
        let [lapses, turn, _, _, wants, _, offered, ids @ ..] = &words[..] else { panic!("{record}") };
        let told = format!("ticket {holder}: {record}");
        count += 1;
        let lapse = places.remove(&format!("%{holder}"));
        // Also who wants several names has something kept for it, perhaps, until that is enough.
        if *offered == "1" || !matches!(*wants, "0" | "1") {
            offered_to.remove(&holder);
        }
        if *offered == "1" {
            assert!(!ids.is_empty() && lapse.is_none(), "{told}");
            continue;
        }
        assert_eq!(lapse, Some(WHEN_LAPSED + lapses.parse::<u64>().expect("a time")), "{told}");
        namers += u64::from(!ids.is_empty());
        let lines = if ids.is_empty() { &["%"][..] } else { ids };
        let chooses = !ids.is_empty() && *wants != "0";
        assert_eq!(line.remove(&format!("%% {holder}")), chooses, "{told} stands in the row of choosers");
        for id in lines {
            assert!(line.remove(&format!("{id} {turn}{holder}")), "{told} does not stand in line {id}");
        }
    }
    assert!(line.is_empty(), "in line without a ticket: {line:?}");
    [count, namers]
}
