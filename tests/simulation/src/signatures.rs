//! What was signed with the nonces of accounts, and whether it can still count (rule S5). Where a gate looks at fences,
//! nothing can that it has not taken when somebody comes there under a newer one.

use std::collections::HashMap;

use crate::census::Census;
use crate::checker::Breach;

/// All transactions so far.
#[derive(Debug, Default)]
pub struct Signatures {
    transactions: HashMap<u64, Transaction>,
    /// By account and nonce.
    signed: HashMap<(String, u64), Vec<u64>>,
}

#[derive(Debug)]
struct Transaction {
    fence: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Dead,
    Accepted,
}

impl Signatures {
    /// A transaction was signed under the lease of a fence, when the newest that had come to the gate was `admitted`.
    /// Some leases are excused.
    pub fn sign(
        &mut self,
        number: u64,
        (account, nonce): (&str, u64),
        (fence, admitted): (u64, u64),
        excused: impl Fn(u64) -> bool,
        census: &Census,
    ) -> Result<(), Breach> {
        let earlier = self.signed.entry((account.to_owned(), nonce)).or_default();
        let clash = earlier.iter().find_map(|other| {
            let transaction = self.transactions.get(other)?;
            let counts = match transaction.fate {
                Fate::Open => transaction.fence >= admitted,
                Fate::Dead => false,
                Fate::Accepted => true,
            };
            let counts = counts && transaction.fence != fence && fence >= admitted;
            counts.then_some((*other, transaction.fence, transaction.fate))
        });
        if !earlier.is_empty() {
            census.count("nonce signed again");
        }
        earlier.push(number);
        self.transactions.insert(number, Transaction { fence, fate: Fate::Open });
        match clash {
            Some((other, holder, fate)) if !excused(fence) && !excused(holder) => {
                let fate = if fate == Fate::Accepted { "is in the chain" } else { "may still count" };
                Err(Breach::new(
                    "S5",
                    format!("{account} {nonce} is signed under {fence}; {other} under {holder} {fate}"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// A transaction can never reach the chain, or the chain has refused it.
    pub fn died(&mut self, number: u64) {
        self.settle(number, Fate::Dead);
    }

    /// The chain has it.
    pub fn accepted(&mut self, number: u64) {
        self.settle(number, Fate::Accepted);
    }

    fn settle(&mut self, number: u64, fate: Fate) {
        if let Some(transaction) = self.transactions.get_mut(&number)
            && transaction.fate != Fate::Accepted
        {
            transaction.fate = fate;
        }
    }
}
