//! The check with which a resource refuses a late holder.
//!
//! A holder that is paused (a garbage collection, a suspended machine) may wake up when its lease has long been
//! another's, and write. No lease can hinder that; the resource can. Every lease has a *fence*, larger than that of any
//! lease before it. The holder sends it along with each write, and the resource refuses a fence that is lower than the
//! highest it has seen. An equal one is the same holder's, who may write more than once.
//!
//! Three checks are ready, for three places where a resource may be:
//!
//! | the resource is | the check |
//! |---|---|
//! | a function in one process | [`FenceGuard`] |
//! | in Redis | [`SCRIPT`] |
//! | a row of a table | a condition in SQL |
//!
//! In all of them the check and the write are one step. A check that comes before the write, in a step of its own,
//! leaves the gap that it should close. Nor does a resource know of a holder that it has not heard from: who reads it, to
//! write what follows from that, shows its fence before the reading too, or a late holder may write in between.
//!
//! Fences are compared within one pool (all named locks of a namespace are one): do not guard one resource
//! by the leases of two. They are whole numbers from 1 to [`MAX_FENCE`].
//!
//! # In SQL
//!
//! The row keeps its highest fence, in a column `fence BIGINT NOT NULL DEFAULT 0`:
//!
//! ```sql
//! UPDATE accounts SET balance = :balance, fence = :fence WHERE id = :id AND fence <= :fence
//! ```
//!
//! No row changed: the holder is late, and must stop. Its transaction, if it is one of several statements, must be
//! rolled back. Let MySQL's driver count the rows that were found: by itself it counts only those that became
//! different, and an equal write of the same holder would pass for a late one.

use crate::error::{Code, Error, Result};
use crate::value::Value;

/// The highest fence, 2^53 - 1: fences are microseconds since 1970 or a little more, and get there in the year 2255.
/// What is above is a mistake that would shut everybody out.
pub const MAX_FENCE: u64 = (1 << 53) - 1;

/// The check for a resource in Redis, for `EVAL`: `KEYS[1]` is a key that keeps the resource's highest fence, `ARGV[1]`
/// the holder's fence as decimal text. The reply is 1 if the holder is admitted, and 0 if it is late and must stop;
/// an error if either is no fence.
///
/// Put the writes that it guards before the script's last line, `return 1`, with the keys that they need (in a
/// cluster, of one hash tag): asked for in another command, they could come late after all.
///
/// The key has no time to live, and must not be given one: a holder may be late by any length of time, and the first to
/// come after the key has gone is admitted whoever it is. The script takes a time to live from the key
/// that it finds there. Delete the key with the resource, and keep it where no eviction takes it.
pub const SCRIPT: &str = include_str!("fence.lua");

/// The condition that a statement of SQL adds to its own, as the module has it: `fence` is the row's column, `:fence` the
/// holder's, to be written into it by the same statement. Spell the parameter as the driver wants it.
pub const SQL: &str = include_str!("fence.sql").trim_ascii_end();

/// [`FenceGuard::admit`] where a language keeps what the guard remembers: the highest fence from then on.
///
/// # Errors
/// As [`FenceGuard::admit`]; `invalid_argument` naming `highest`, or `fence`, if it is no whole number.
pub fn admit(highest: &Value, fence: &Value) -> Result<u64> {
    let read = |value: &Value, field| value.as_u64().map_err(|error| error.within(field));
    let mut guard = FenceGuard::since(read(highest, "highest")?);
    guard.admit(read(fence, "fence")?)?;
    Ok(guard.highest())
}

/// The check for a resource in this process: remembers the highest fence that it has seen.
///
/// `admit` wants the guard for itself, so keep it behind the same lock as what it guards:
///
/// ```
/// # use std::sync::Mutex;
/// # use leasehold::fence::FenceGuard;
/// struct Account {
///     guard: FenceGuard,
///     balance: u64,
/// }
///
/// fn write(account: &Mutex<Account>, fence: u64, balance: u64) -> Result<(), leasehold::Error> {
///     let mut account = account.lock().unwrap();
///     account.guard.admit(fence)?;
///     account.balance = balance;
///     Ok(())
/// }
/// # let account = Mutex::new(Account { guard: FenceGuard::default(), balance: 0 });
/// # write(&account, 7, 1).unwrap();
/// # assert_eq!(write(&account, 6, 2).unwrap_err().code(), leasehold::Code::Lost);
/// # assert_eq!(account.lock().unwrap().balance, 1);
/// ```
///
/// It remembers no longer than it lives. A resource that lives longer keeps its highest fence with itself, and makes its
/// guard by [`FenceGuard::since`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FenceGuard {
    highest: u64,
}

impl FenceGuard {
    /// A guard that has seen this fence; 0 for none.
    pub fn since(highest: u64) -> Self {
        FenceGuard { highest }
    }

    /// The highest fence that was admitted; 0 for none.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Admits the holder of this fence unless one with a higher fence was here before.
    ///
    /// # Errors
    /// `lost` if the holder is late: it must not write. `invalid_argument` naming `fence` if it is 0 or above
    /// [`MAX_FENCE`]. Neither changes the guard.
    pub fn admit(&mut self, fence: u64) -> Result<()> {
        if !(1..=MAX_FENCE).contains(&fence) {
            return Err(Error::invalid(
                "fence",
                format_args!("{fence} is out of range; 1 to {MAX_FENCE} are allowed"),
            ));
        }
        let highest = self.highest;
        if fence < highest {
            return Err(Error::new(
                Code::Lost,
                format!(
                    "the lease of fence {fence} has ended: fence {highest} was here since. Nothing was written; \
                     stop, and acquire anew"
                ),
            ));
        }
        self.highest = fence;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_fence_is_refused_and_an_equal_one_is_not() {
        let mut guard = FenceGuard::default();
        for (fence, highest) in [(5, Ok(5)), (5, Ok(5)), (4, Err(5)), (5, Ok(5)), (9, Ok(9)), (5, Err(9))] {
            let refused = guard.admit(fence).map_err(|error| error.code());
            assert_eq!(refused, highest.map(|_| ()).map_err(|_| Code::Lost), "{fence}");
            assert_eq!(Ok(guard.highest()), highest.or_else(Ok::<u64, u64>), "{fence}");
        }
        assert_eq!(FenceGuard::since(9), guard);
    }

    #[test]
    fn who_shows_its_fence_before_it_reads_has_nobody_write_in_between() {
        let mut guard = FenceGuard::since(5);
        // Of the holder of 9 nobody has heard here yet.
        assert!(guard.admit(5).is_ok());
        guard.admit(9).unwrap();
        assert!(guard.admit(5).is_err());
        assert!(guard.admit(9).is_ok());
    }

    #[test]
    fn a_guard_that_a_language_keeps_admits_the_same() {
        let admit = |highest: u64, fence: Value| {
            super::admit(&highest.into(), &fence).map_err(|error| error.field().map(str::to_owned))
        };
        assert_eq!(admit(0, 5.into()), Ok(5));
        assert_eq!(admit(5, 5.into()), Ok(5));
        assert_eq!(admit(5, 9.into()), Ok(9));
        assert_eq!(admit(9, 5.into()), Err(None));
        for wrong in [0.into(), (MAX_FENCE + 1).into(), Value::Number(1.5), "5".into(), Value::Null] {
            assert_eq!(admit(9, wrong), Err(Some("fence".to_owned())));
        }
        assert_eq!(super::admit(&"9".into(), &9.into()).unwrap_err().field(), Some("highest"));
    }

    #[test]
    fn the_condition_is_that_of_the_statement() {
        let text = include_str!("fence.rs");
        let statement = text.lines().find(|line| line.starts_with("//! UPDATE")).unwrap();
        assert!(statement.ends_with(&format!("AND {SQL}")), "{statement}");
    }

    #[test]
    fn a_late_holder_is_told_what_to_do() {
        let error = FenceGuard::since(9).admit(5).unwrap_err();
        assert_eq!(
            error.message(),
            "the lease of fence 5 has ended: fence 9 was here since. Nothing was written; stop, and acquire anew"
        );
    }

    #[test]
    fn what_is_no_fence_changes_nothing() {
        let mut guard = FenceGuard::since(9);
        for fence in [0, MAX_FENCE + 1, u64::MAX] {
            let error = guard.admit(fence).unwrap_err();
            assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("fence")));
        }
        assert_eq!(guard.highest(), 9);
        // The highest whole number that JavaScript, Lua and every database tell from the next one.
        assert_eq!(MAX_FENCE, 9_007_199_254_740_991);
        assert!(guard.admit(MAX_FENCE).is_ok());
    }
}
