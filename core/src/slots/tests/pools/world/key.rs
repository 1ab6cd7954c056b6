//! What tells two worlds apart.

use std::cmp::Ordering;

use super::super::TICK;
use super::super::account::{Account, Record};
use super::{Asked, Client, Holding, World, at, id};
use crate::Micros;
use crate::nonce::{Nonce, NonceRecord, Outcome};
use crate::slots::{Choice, Grant, LeaseRef, Reply, Request, State};

impl World {
    /// All that can make a difference, by how far it is from now; equal for clients that are exchanged.
    pub fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(96);
        for (at, account) in self.accounts.iter().enumerate() {
            self.account_key(at, account, &mut key);
        }
        let arrival = |at| self.pool.find(&id(at)).map(|place| self.pool.arrival(place));
        key.push(u8::from(arrival(0) < arrival(1)));
        let mut clients = [0, 1].map(|client| self.client_key(&self.clients[client]));
        // Those with one kind of network are alike.
        if self.bounds.unsure != 1 {
            clients.sort_unstable();
        }
        clients.iter().for_each(|client| key.extend(client));
        key
    }

    fn account_key(&self, at: usize, account: &Account, key: &mut Vec<u8>) {
        let slot = self.pool.find(&id(at)).and_then(|place| self.pool.slots.get(place as usize));
        if let Some(slot) = slot {
            let leased = slot.state == State::Leased;
            let nonce = match slot.nonce {
                NonceRecord::Unset => [0, 0],
                NonceRecord::Known(next) => [1, apart(next, account.next)],
                NonceRecord::InDoubt { floor } => [2, floor.map_or(255, |floor| apart(floor, account.next))],
            };
            key.extend(nonce);
            key.extend([slot.state as u8, slot.mode as u8, u8::from(slot.epoch == 0)]);
            let times = [slot.until, slot.rest_until, if leased { slot.hold_until } else { 0 }];
            key.extend(times.map(|time| self.left(time)));
        }
        let lease = account.lease.as_ref().filter(|lease| lease.until > self.now);
        key.extend(lease.map_or([0; 3], |lease| {
            [1 + u8::from(lease.told), self.left(lease.until), self.rank(at, lease.fence)]
        }));
        key.extend(match account.record {
            None => [0, 0],
            Some(Record::Doubt) => [1, 0],
            Some(Record::Known(next)) => [2, apart(next, account.next)],
        });
        key.extend(account.flying.map_or([0; 3], |(nonce, fence, age)| {
            [1 + (age / TICK) as u8, apart(nonce, account.next), self.rank(at, fence)]
        }));
        key.extend([self.left(account.rest_until), account.mode as u8]);
    }

    fn client_key(&self, client: &Client) -> Vec<u8> {
        let mut key = Vec::with_capacity(32);
        match client.holding {
            None => key.push(0),
            Some(Holding { account, fence, until, nonce, signed, again }) => {
                key.extend([1 + account as u8, self.rank(account, fence), self.left(until)]);
                // What is over is lost, whatever is said of it.
                if until > self.now {
                    let next = self.accounts[account].next;
                    key.extend([
                        nonce.map_or(255, |nonce| apart(nonce, next)),
                        signed as u8,
                        u8::from(again),
                    ]);
                }
            }
        }
        // What was performed, or comes too late, changes nothing any more.
        let can_act = |ghost: &&Asked| ghost.answer.is_none() && ghost.sent + TICK >= self.now;
        for asked in [client.asked.as_ref(), client.ghost.as_ref().filter(can_act)] {
            match asked {
                Some(asked) => self.asked_key(asked, &mut key),
                None => key.push(0),
            }
        }
        key
    }

    fn asked_key(&self, asked: &Asked, key: &mut Vec<u8>) {
        let age = ((self.now - asked.sent) / TICK).min(3) as u8;
        key.extend([1 + age, u8::from(asked.answer.is_some())]);
        let behind = |nonce, lease: &LeaseRef| apart(nonce, self.accounts[at(&lease.slot)].next);
        let (kind, lease, what) = match &asked.envelope.requests[0] {
            Request::Renew { lease, .. } => (20, lease, 0),
            Request::Resync { lease, chain, .. } => (30, lease, behind(*chain, lease)),
            Request::Release { lease, outcome, .. } => match *outcome {
                Outcome::Unsettled => (40, lease, 0),
                Outcome::Unused => (41, lease, 0),
                Outcome::Unknown { .. } => (42, lease, 0),
                Outcome::Used { next } => (43, lease, behind(next, lease)),
                Outcome::Rejected { expected } => (44, lease, behind(expected.unwrap_or(0), lease)),
            },
            Request::Claim(claim) => {
                let any = matches!(claim.choice, Choice::Any { .. });
                key.push(10 + u8::from(any));
                if let Some(Reply::Granted(grants)) = asked.answer.as_ref().map(|done| &done.replies[0]) {
                    let Grant { slot, fence, deadline, nonce, .. } = &grants[0];
                    let (rank, left) = (self.rank(at(slot), *fence), self.left(*deadline));
                    key.extend([1 + at(slot) as u8, rank, left]);
                    if let (1, NonceRecord::Known(next)) = (rank, *nonce) {
                        key.push(apart(next, self.accounts[at(slot)].next));
                    }
                }
                return;
            }
            _ => return,
        };
        let rank = self.rank(at(&lease.slot), lease.fence);
        key.extend([kind, at(&lease.slot) as u8, rank]);
        // Of a lease that is another's it does not matter.
        key.extend((rank == 1).then_some(what));
    }

    /// How a fence stands to the slot's.
    fn rank(&self, account: usize, fence: u64) -> u8 {
        let slot = self.pool.find(&id(account)).and_then(|place| self.pool.slots.get(place as usize));
        match slot.map_or(0, |slot| slot.fence).cmp(&fence) {
            Ordering::Greater => 0,
            Ordering::Equal => 1,
            Ordering::Less => 2,
        }
    }

    fn left(&self, until: Micros) -> u8 {
        (until.saturating_sub(self.now) / TICK) as u8
    }
}

fn apart(nonce: Nonce, next: Nonce) -> u8 {
    (128 + nonce).wrapping_sub(next) as u8
}
