//! Tokens whose worth changes, or is told of otherwise than pages list it.

use rustc_hash::FxHashSet;

use super::scene::{MAX_AGE, START, walk, walk_and_take};
use crate::tokens::{Candidates, Token};

// It came back at its old worth, and one that was said to be spent before was forgotten.
#[test]
fn what_a_selection_has_comes_back_at_the_worth_that_the_source_told_meanwhile() {
    type End = fn(&mut Candidates, u32);
    let given_back: End = |pool, place| pool.put_back(START, &[place]);
    let anothers: End = |pool, place| pool.missed(START, place);
    let gone: End = |pool, place| pool.gone(START, place);
    let spent: End = |pool, place| pool.spent(place, START + MAX_AGE);
    for removed in [false, true] {
        for (end, sum, free) in
            [(given_back, 13u64, 13u64), (anothers, 13, 13), (gone, 10, 10), (spent, 10, 10)]
        {
            let mut pool = Candidates::new(1, MAX_AGE);
            pool.set_live(START - MAX_AGE, true);
            walk_and_take(&mut pool);
            let t0 = pool.place("t0").unwrap();
            if removed {
                pool.removed(START, "t0").unwrap();
            }
            for worth in [2u64, 3] {
                pool.added(START, Token::new("t0", worth)).unwrap();
                assert_eq!(pool.total().exact(), Some((10 + worth).into()));
            }
            assert!(pool.has_within(13u64.into(), 3) && !pool.has_within(14u64.into(), 3));
            assert_eq!(pool.amount(t0), 5u64.into(), "its holder has what it was given");
            end(&mut pool, t0);
            assert_eq!(pool.total().exact(), Some(sum.into()));
            (0..3).filter(|&place| place != t0).for_each(|place| pool.put_back(START, &[place]));
            pool.rouse(START, &FxHashSet::default());
            assert_eq!(pool.free(START).exact(), Some(free.into()));
        }
    }
}

#[test]
fn what_is_worth_again_what_it_was_or_is_said_to_be_spent_comes_back_as_if_nothing_had_been_told() {
    for spent in [false, true] {
        let mut pool = Candidates::new(1, MAX_AGE);
        pool.set_live(START - MAX_AGE, true);
        walk_and_take(&mut pool);
        pool.added(START, Token::new("t0", 3u64)).unwrap();
        if spent {
            pool.removed(START, "t0").unwrap();
            assert_eq!(pool.total().exact(), Some(10u64.into()));
        } else {
            pool.added(START, Token::new("t0", 5u64)).unwrap();
        }
        pool.put_back(START, &[0, 1, 2]);
        let left = if spent { 10u64 } else { 15 };
        assert_eq!((pool.total().exact(), pool.free(START)), (Some(left.into()), pool.total()));
    }
}

/// Whether or not a selection has it: a page of a replica that lags behind lists what it was worth before.
#[test]
fn what_the_source_told_of_a_worth_no_late_page_takes_back() {
    type Say = fn(&mut Candidates);
    let listed: Say = |pool| walk(pool, START, 0..3);
    let spent: Say = |pool| {
        walk_and_take(pool);
        pool.spent(pool.place("t0").unwrap(), START + 1);
    };
    for say in [listed, walk_and_take, spent] {
        let mut pool = Candidates::new(1, MAX_AGE);
        pool.set_live(START - MAX_AGE, true);
        say(&mut pool);
        pool.added(START + 1, Token::new("t0", 3u64)).unwrap();
        for (at, sum) in [(START + 2, 13u64), (START + 1 + MAX_AGE, 13), (START + 2 + MAX_AGE, 15)] {
            walk(&mut pool, at, 0..3);
            assert_eq!(pool.total().exact(), Some(sum.into()), "at {}", at - START);
        }
    }
}
