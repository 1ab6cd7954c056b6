//! Tokens of one wallet, selected by several processes.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::client::{SelectOptions, TokensInMemory};
use leasehold::tokens::Token;
use leasehold::{Code, SECOND};
use leasehold_faults::{Place, Tokens, tokens_from, tokens_of_one};

on_both!(
    f6_replicas_that_hold_what_they_have_seldom_ask_for_what_others_hold,
    hot_wallets_are_never_said_to_hold_too_little,
    i6_uncontended_it_is_one_page_and_one_claim,
    f15_what_is_spent_is_selected_by_nobody_and_everything_is_spent_once,
);

fn at_once() -> SelectOptions {
    SelectOptions { timeout: Some(0), ..SelectOptions::default() }
}

/// A server that has just started grants nothing for as long as a lock may live: waits until that is over.
async fn once_granted(tokens: &Tokens) {
    let selection = tokens.select(1u64).await.expect("a token");
    selection.release().await.expect("given back");
}

async fn i6_uncontended_it_is_one_page_and_one_claim(place: Place) {
    // What was listed before anything is granted is looked at once more.
    let first = tokens_of_one(&place.handle(), 1, 5 * SECOND);
    once_granted(&first).await;
    for ask in [5u64, 50] {
        let tokens = tokens_of_one(&place.handle(), 300, 5 * SECOND);
        let selection = tokens.select(ask).await.expect("tokens");
        let counts = tokens.counts();
        assert_eq!((counts.pages, counts.claims, counts.asked, counts.missed), (1, 1, ask, 0));
        selection.release().await.expect("given back");
    }
}

// 4 replicas of 8 workers over 10,000 tokens, of which they take 4,000 and hold them.
async fn f6_replicas_that_hold_what_they_have_seldom_ask_for_what_others_hold(place: Place) {
    // How replicas that know nothing of each other come upon each other is chance: now and then a tenth, mostly a
    // thirtieth.
    let (mut asked, mut missed) = (0, 0);
    for round in 0..4 {
        let source = TokensInMemory::default();
        (0..10_000).for_each(|number| source.add("hot", "", Token::new(format!("t{round}-{number}"), 1u64)));
        let replicas: Vec<_> = (0..4).map(|_| tokens_from(&place.handle(), &source, 5 * SECOND)).collect();
        let workers: Vec<_> = (0..32)
            .map(|worker| {
                let tokens = replicas[worker % 4].clone();
                tokio::spawn(async move {
                    let mut held = Vec::new();
                    for _ in 0..25 {
                        let long = SelectOptions { timeout: Some(120 * SECOND), ..SelectOptions::default() };
                        held.push(tokens.select_with(5u64, long).await.expect("tokens"));
                    }
                    held
                })
            })
            .collect();
        let mut held = Vec::new();
        for worker in workers {
            held.extend(worker.await.expect("no panic"));
        }
        let ids: HashSet<_> =
            held.iter().flat_map(|selection| selection.tokens()).map(|token| token.id.clone()).collect();
        assert_eq!(ids.len(), 4_000, "each in one selection");
        asked += replicas.iter().map(|tokens| tokens.counts().asked).sum::<u64>();
        missed += replicas.iter().map(|tokens| tokens.counts().missed).sum::<u64>();
        println!("{missed} of {asked} were asked for in vain");
    }
    assert!(missed * 10 < asked, "{missed} of {asked} were asked for in vain");
}

// 300 tokens, 4 replicas of 8 workers that hold 9 each for a moment: nearly all of them at any time.
async fn hot_wallets_are_never_said_to_hold_too_little(place: Place) {
    let live = Arc::new(Mutex::new(HashSet::new()));
    let workers: Vec<_> = (0..4)
        .map(|_| tokens_of_one(&place.handle(), 300, 5 * SECOND))
        .flat_map(|tokens| vec![tokens; 8])
        .map(|tokens| {
            let live = live.clone();
            tokio::spawn(async move {
                for _ in 0..5 {
                    let long = SelectOptions { timeout: Some(120 * SECOND), ..SelectOptions::default() };
                    let selection = tokens.select_with(9u64, long).await.expect("there is enough");
                    let ids: Vec<_> = selection.tokens().iter().map(|token| token.id.clone()).collect();
                    for id in &ids {
                        assert!(
                            live.lock().expect("no panic").insert(id.clone()),
                            "{id} is in two selections"
                        );
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    for id in &ids {
                        live.lock().expect("no panic").remove(id);
                    }
                    selection.release().await.expect("given back");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("no panic");
    }
}

// I4: what is left and what was spent is what was issued, and nothing was spent twice.
async fn f15_what_is_spent_is_selected_by_nobody_and_everything_is_spent_once(place: Place) {
    let source = TokensInMemory::default();
    (0..200).for_each(|number| source.add("hot", "", Token::new(format!("t{number}"), 1u64)));
    let spent = Arc::new(Mutex::new(HashSet::new()));
    let workers: Vec<_> = (0..4)
        .map(|_| tokens_from(&place.handle(), &source, 5 * SECOND))
        .map(|tokens| {
            let (source, spent) = (source.clone(), spent.clone());
            tokio::spawn(async move {
                loop {
                    let selection = match tokens.select(7u64).await {
                        Ok(selection) => selection,
                        Err(error) if error.code() == Code::Insufficient => return,
                        Err(error) => panic!("{error}"),
                    };
                    for token in selection.tokens() {
                        let new = spent.lock().expect("no panic").insert(token.id.clone());
                        assert!(new, "{} was spent twice", token.id);
                    }
                    selection.spent().await.expect("said");
                    // Visible a moment later.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    selection.tokens().iter().for_each(|token| source.spend("hot", &token.id));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("no panic");
    }
    let spent = spent.lock().expect("no panic").len() as u64;
    assert_eq!(source.sum("hot", ""), (200 - spent).into());
    assert!(spent > 193);
}

// F9, F18: killed at any moment, it costs others no more than the time to live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_what_a_killed_process_had_is_free_after_its_time_to_live() {
    let place = Place::redis();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spender"));
    command.args([place.url(), "60", "5000"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it tells");
    let theirs: HashSet<&str> = line.split_whitespace().collect();
    assert_eq!(theirs.len(), 60);
    child.kill().and_then(|()| child.wait()).expect("killed");

    let tokens = tokens_of_one(&place.handle(), 100, 5 * SECOND);
    let free = tokens.select(40u64).await.expect("what it did not have");
    let ours: HashSet<_> = free.tokens().iter().map(|token| token.id.to_string()).collect();
    // A machine that stood still may have let them lapse.
    let still = tokens.count_locked().await.expect("an answer") == 100;
    assert!(!still || ours.iter().all(|id| !theirs.contains(id.as_str())));
    free.release().await.expect("given back or lapsed");
    // F18: who waits longer than that has them.
    let all = tokens.select(100u64).await.expect("all of them");
    assert_eq!(all.tokens().len(), 100);
    all.release().await.expect("given back");
    assert_eq!(tokens.count_locked().await.expect("an answer"), 0, "nothing stays behind");
}

// F9, F19: killed at any moment, between two commands or within one, it leaves nothing that outlives its time to live,
// and whoever selects beside it never has what it has. U7: in whatever time zone it lives. Upstream's locks had ended at once
// in the one, and lasted for hours in the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_f19_u7_whenever_a_process_is_killed_all_is_free_after_its_time_to_live() {
    let place = Place::redis();
    let tokens = tokens_of_one(&place.handle(), 100, 5 * SECOND);
    once_granted(&tokens).await;
    let ttl = Duration::from_secs(5);
    for round in 0..6u32 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spender"));
        command.args([place.url(), "60", "5000"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("TZ", ["Asia/Kolkata", "America/New_York"][round as usize % 2]);
        let mut child = command.spawn().expect("it starts");
        let out = child.stdout.take().expect("piped");
        // What it told before it was killed, it had.
        let told = std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line).expect("readable");
            line
        });
        let moment = Duration::from_micros(u64::from(round.wrapping_mul(2_654_435_761) % 60_000));
        tokio::time::sleep(moment).await;
        child.kill().and_then(|()| child.wait()).expect("killed");
        let killed = std::time::Instant::now();
        let line = told.join().expect("no panic");
        let free = tokens.select(40u64).await.expect("what it can not have");
        let theirs: HashSet<&str> = line.split_whitespace().collect();
        let ours = || free.tokens().iter().map(|token| &*token.id);
        // A machine that stood still may have let them lapse.
        assert!(killed.elapsed() >= ttl || ours().all(|id| !theirs.contains(id)), "in two hands");
        free.release().await.expect("given back or lapsed");
        let left = ttl.saturating_sub(killed.elapsed()) + Duration::from_millis(100);
        tokio::time::sleep(left).await;
        let moment = SelectOptions { timeout: Some(2 * SECOND), ..SelectOptions::default() };
        let all = tokens.select_with(100u64, moment).await.expect("all of them");
        all.release().await.expect("given back");
        assert_eq!(tokens.count_locked().await.expect("an answer"), 0, "round {round}: nothing stays behind");
    }
}

// U6, S7: a store that is away is never read as tokens that others have, nor as tokens that are free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u6_a_store_that_is_away_is_its_own_error() {
    let mut place = Place::redis();
    let tokens = tokens_of_one(&place.handle(), 10, 5 * SECOND);
    once_granted(&tokens).await;
    place.stop();
    let error = tokens.select_with(10u64, at_once()).await.expect_err("nobody is there");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    let error = tokens.select_with(11u64, at_once()).await.expect_err("it has but 10");
    assert_eq!(error.code(), Code::Insufficient, "what the source says needs no store: {error}");
}
