//! Judges the answers alone: whatever the machine keeps, nothing unsafe may be read from what it says.

use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{Nonce, NonceRecord, Outcome};
use crate::slots::{Choice, Claim, Grant, Performed, Reply, Request, SlotChange, TO_THE_END};

/// What clients have been told, whatever the store has forgotten since.
#[derive(Default)]
pub struct Oracle {
    accounts: Vec<Told>,
    /// The highest fence that anybody was given.
    top: u64,
    /// The shortest time for which a thief waited that does not wait for the end of a lease.
    haste: Option<Micros>,
}

struct Told {
    slot: SlotId,
    holder: u128,
    fence: u64,
    /// When the lease ends: by the store's time, and by the time that truly passed.
    deadline: Micros,
    true_deadline: Micros,
    held: bool,
    /// When somebody claimed it.
    claimed: Option<Micros>,
    /// A nonce that a holder may sign with, or may have signed with, and said nothing of.
    out: Option<Nonce>,
    /// What the holder may sign with now.
    known: Option<Nonce>,
    floor: Nonce,
    /// The store has fallen back since: it may believe in an older lease.
    fell_back: bool,
}

impl Oracle {
    /// Hears an envelope that was performed for the first time.
    pub fn hear(&mut self, true_now: Micros, requests: &[Request], performed: &Performed) {
        assert_eq!(performed.replies.len(), requests.len());
        assert!(performed.calls.freed == 0 || performed.now > 0);
        self.note_claims(performed);
        for (request, reply) in requests.iter().zip(&performed.replies) {
            if let Request::Claim(Claim { steal: Some(patience), .. }) = request
                && *patience < TO_THE_END
            {
                self.haste = Some(self.haste.map_or(*patience, |haste| haste.min(*patience)));
            }
            match (request, reply) {
                (Request::Claim(claim), Reply::Granted(grants) | Reply::Partly { grants, .. }) => {
                    let own = matches!(claim.choice, Choice::Free { .. }).then_some(claim.holder);
                    for grant in grants {
                        self.granted(performed.now, true_now, grant, own);
                        let told = self.accounts.iter_mut().find(|told| told.slot == grant.slot);
                        told.expect("granted").holder = claim.holder;
                    }
                }
                (Request::Renew { lease, .. }, Reply::Renewed { deadline }) => {
                    let Some(told) = self.current(&lease.slot, lease.fence) else { continue };
                    // A store that fell back may have forgotten a renewal; its quiet time covers that.
                    assert!(
                        *deadline >= told.deadline || told.fell_back,
                        "a renewal shortened {}",
                        lease.slot
                    );
                    told.deadline = *deadline;
                    told.true_deadline = true_now + (deadline - performed.now);
                }
                (Request::Renew { lease, .. }, Reply::Claimed { deadline, .. }) => {
                    let haste = self.haste;
                    let Some(told) = self.current(&lease.slot, lease.fence) else { continue };
                    let cut = told.exposed(*deadline, haste) || told.fell_back;
                    assert!(*deadline == told.deadline || cut, "{}: cut short", lease.slot);
                }
                (Request::Release { lease, outcome, .. }, Reply::Released) => {
                    let Some(told) = self.current(&lease.slot, lease.fence) else { continue };
                    told.held = false;
                    match outcome {
                        Outcome::Used { next } => (told.out, told.floor) = (None, *next),
                        Outcome::Unused if told.known.is_some() => told.out = None,
                        Outcome::Rejected { expected: Some(next) } if *next >= told.floor => {
                            (told.out, told.floor) = (None, *next);
                        }
                        _ => {}
                    }
                }
                (Request::Resync { lease, .. }, Reply::Resynced { next }) => {
                    let Some(told) = self.current(&lease.slot, lease.fence) else { continue };
                    (told.out, told.known, told.floor) = (Some(*next), Some(*next), *next);
                }
                (Request::Change { slot, change: SlotChange::Break }, Reply::Changed) => {
                    self.accounts
                        .iter_mut()
                        .filter(|told| told.slot == *slot)
                        .for_each(|told| told.held = false);
                }
                (_, Reply::Inspected { total, ready, in_doubt, due, .. }) => {
                    assert!(ready + due <= *total && in_doubt <= ready, "{reply:?}");
                }
                _ => {}
            }
        }
        self.note_claims(performed);
    }

    fn note_claims(&mut self, performed: &Performed) {
        let claimed = |told: &&mut Told| performed.calls.claimed.contains(&told.fence);
        for told in self.accounts.iter_mut().filter(claimed) {
            told.claimed = told.claimed.or(Some(performed.now));
        }
    }

    /// The store has fallen back: what it knew of nonces last may be gone, but not what was signed.
    pub fn store_fell_back(&mut self) {
        self.accounts.iter_mut().for_each(|told| (told.floor, told.fell_back) = (0, true));
    }

    /// `own` is who may take the place of its own lease.
    fn granted(&mut self, now: Micros, true_now: Micros, grant: &Grant, own: Option<u128>) {
        assert!(grant.fence > self.top, "{}: fence {} after {}", grant.slot, grant.fence, self.top);
        assert!(grant.deadline > now, "{}: a lease that has ended", grant.slot);
        self.top = grant.fence;
        let fresh = Told {
            slot: grant.slot.clone(),
            holder: 0,
            fence: 0,
            deadline: 0,
            true_deadline: 0,
            held: false,
            claimed: None,
            out: None,
            known: None,
            floor: 0,
            fell_back: false,
        };
        let at = self.accounts.iter().position(|told| told.slot == grant.slot).unwrap_or_else(|| {
            self.accounts.push(fresh);
            self.accounts.len() - 1
        });
        let told = &mut self.accounts[at];
        let live = told.held && told.deadline > now && told.true_deadline > true_now;
        let live = live && !told.exposed(now, self.haste) && own != Some(told.holder);
        assert!(!live, "{}: two live leases, fences {} and {}", grant.slot, told.fence, grant.fence);
        match grant.nonce {
            NonceRecord::Known(nonce) => {
                assert_eq!(told.out, None, "{}: a nonce is out that nobody settled", grant.slot);
                assert!(nonce >= told.floor, "{}: nonce {nonce} below {}", grant.slot, told.floor);
                (told.out, told.known, told.floor) = (Some(nonce), Some(nonce), nonce);
            }
            NonceRecord::InDoubt { floor } => {
                assert!(floor.unwrap_or(0) >= told.floor, "{}: the floor fell", grant.slot);
                told.known = None;
            }
            // The slot is new, or was removed and with it what was known of its nonce.
            NonceRecord::Unset => (told.out, told.known, told.floor) = (None, None, 0),
        }
        told.held = true;
        told.claimed = None;
        told.fell_back = false;
        told.fence = grant.fence;
        told.deadline = grant.deadline;
        told.true_deadline = true_now + (grant.deadline - now);
    }

    /// The lease that was named, which must be the last that was granted, as far as the store remembers.
    fn current(&mut self, slot: &SlotId, fence: u64) -> Option<&mut Told> {
        let told = self.accounts.iter_mut().find(|told| told.slot == *slot).expect("a slot that was granted");
        assert!(told.fence == fence || told.fell_back, "{slot}: an old fence did something");
        Some(told).filter(|told| told.fence == fence)
    }
}

impl Told {
    /// Whether a thief that does not wait for the end of the lease may have it at this time.
    fn exposed(&self, now: Micros, haste: Option<Micros>) -> bool {
        matches!((self.claimed, haste), (Some(claimed), Some(haste)) if now >= claimed + haste)
    }
}
