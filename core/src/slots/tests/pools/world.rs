//! The pool, its accounts and two clients, who ask it over a network that loses, delays and doubles.

mod key;

use super::account::{Account, Mode, Verdict};
use super::{Bounds, DOUBT_REST, HOLD, TICK, TTL};
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{Nonce, NonceRecord, Outcome};
use crate::slots::tests::scene::{START, Scene, asking, define_resting, ids};
use crate::slots::{
    Answer, Choice, Claim, Envelope, Grant, Lane, LeaseRef, Moment, Performed, Pool, Reply, Request,
    SlotChange, Strategy, VALIDITY,
};

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Ask(usize, Ask, Fate),
    /// Sends the same again, and hears the answer.
    Again(usize),
    /// A copy arrives of what was asked, or of what one asked who has crashed since; nobody hears the answer.
    Copy(usize),
    Ghost(usize),
    /// It forgets all that it has, and is another from then on.
    Crash(usize),
    Sign(usize),
    /// What was signed arrives; whether its sender is told.
    Land(usize, bool),
    /// What was signed can never count; whether its sender is told.
    Vanish(usize, bool),
    Change(SlotChange),
    Tick,
}

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ask {
    Any,
    /// The first account.
    This,
    Renew,
    /// With what is true, or with nothing said.
    Release(bool),
    /// With what the chain says.
    Resync,
}

/// What becomes of an envelope as it is sent for the first time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Answered,
    /// It is performed, and nobody hears the answer.
    Unheard,
    /// It is on its way.
    Late,
}

#[derive(Clone)]
pub struct World {
    pub pool: Pool,
    pub now: Micros,
    accounts: [Account; 2],
    clients: [Client; 2],
    top: u64,
    born: u128,
    bounds: Bounds,
}

#[derive(Clone, Default)]
struct Client {
    name: u128,
    sequence: u64,
    holding: Option<Holding>,
    asked: Option<Asked>,
    /// What was asked by one who crashed.
    ghost: Option<Asked>,
    /// What was answered last.
    last: Option<Asked>,
}

/// A lease as its holder sees it.
#[derive(Clone, Copy, Debug)]
struct Holding {
    account: usize,
    fence: u64,
    until: Micros,
    nonce: Option<Nonce>,
    signed: Signed,
    /// Whether it signed twice.
    again: bool,
}

/// What the holder knows of what it signed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Signed {
    Nothing,
    Untold,
    Accepted,
    Refused,
}

#[derive(Clone, Debug)]
struct Asked {
    envelope: Envelope,
    sent: Micros,
    /// Once it was performed.
    answer: Option<Performed>,
}

impl World {
    pub fn new(bounds: Bounds) -> Self {
        let mut scene = Scene::bare();
        scene.ask(define_resting(&NAMES[..bounds.accounts], DOUBT_REST));
        let mut accounts = [Account::new(FIRST), Account::new(FIRST)];
        accounts[bounds.accounts..].iter_mut().for_each(|account| account.mode = Mode::Out);
        let mut world = World {
            pool: scene.pool,
            now: START,
            accounts,
            clients: Default::default(),
            top: 0,
            born: 0,
            bounds,
        };
        (0..2).for_each(|client| world.bear(client));
        world
    }

    /// All steps that may be possible.
    pub fn steps(bounds: Bounds) -> Vec<Step> {
        let mut steps = vec![Step::Tick];
        let both = [true, false];
        for client in 0..2 {
            let unsure =
                [Fate::Unheard, Fate::Late].into_iter().take(2 * usize::from(client < bounds.unsure));
            for fate in [Fate::Answered].into_iter().chain(unsure) {
                let this = bounds.administrated.then_some(Ask::This);
                let asks = [Ask::Any, Ask::Renew, Ask::Resync].into_iter().chain(this);
                let asks = asks.chain(both.map(Ask::Release));
                steps.extend(asks.map(|ask| Step::Ask(client, ask, fate)));
            }
            steps.extend([Step::Crash(client), Step::Sign(client)]);
            if client < bounds.unsure {
                steps.extend([Step::Again(client), Step::Copy(client), Step::Ghost(client)]);
            }
        }
        for account in 0..2 {
            steps.extend(both.map(|told| Step::Land(account, told)));
            steps.extend(both.map(|told| Step::Vanish(account, told)));
        }
        if bounds.administrated {
            steps.extend([SlotChange::Enable, SlotChange::Disable, SlotChange::Drain].map(Step::Change));
        }
        steps
    }

    /// Takes a step; false if it is not possible.
    pub fn take(&mut self, step: Step) -> Result<bool, String> {
        match step {
            Step::Tick => {
                let mut passed = self.accounts.clone();
                if !passed.iter_mut().all(Account::tick) {
                    return Ok(false);
                }
                self.accounts = passed;
                self.now += TICK;
            }
            Step::Crash(client) => {
                let left = &mut self.clients[client];
                if left.holding.is_none() && left.asked.is_none() {
                    return Ok(false);
                }
                left.ghost = left.asked.take();
                self.bear(client);
            }
            Step::Sign(client) => return self.sign(client),
            Step::Land(account, told) => {
                let Some((fence, accepted)) = self.accounts[account].land() else { return Ok(false) };
                let signed = if accepted { Signed::Accepted } else { Signed::Refused };
                return Ok(!told || self.tell(fence, signed));
            }
            Step::Vanish(account, told) => {
                let Some((_, fence, _)) = self.accounts[account].flying.take() else { return Ok(false) };
                return Ok(!told || self.tell(fence, Signed::Refused));
            }
            Step::Change(change) => {
                let slot = id(0);
                let envelope =
                    Envelope { requests: vec![Request::Change { slot, change }], ..Envelope::default() };
                self.perform(&envelope)?;
            }
            Step::Ask(client, ask, fate) => return self.ask(client, ask, fate),
            Step::Again(client) => {
                let Some(asked) = self.clients[client].asked.take() else { return Ok(false) };
                let (asked, answer) = self.arrive(asked)?;
                self.hear(client, asked, answer);
            }
            Step::Copy(client) => {
                // Whatever is performed is not performed again: see the check.
                let Some(asked) = self.clients[client].asked.take_if(|asked| asked.answer.is_none()) else {
                    return Ok(false);
                };
                self.clients[client].asked = Some(self.arrive(asked)?.0);
            }
            Step::Ghost(client) => {
                let ghost = self.clients[client].ghost.take_if(|ghost| ghost.answer.is_none());
                let Some(ghost) = ghost else { return Ok(false) };
                self.clients[client].ghost = Some(self.arrive(ghost)?.0);
            }
        }
        Ok(true)
    }

    fn bear(&mut self, client: usize) {
        self.born += 1;
        let ghost = self.clients[client].ghost.take();
        self.clients[client] = Client { name: self.born, ghost, ..Client::default() };
    }

    /// Tells the sender what became of what it signed; false if there is nobody to be told.
    fn tell(&mut self, fence: u64, signed: Signed) -> bool {
        let mut holdings = self.clients.iter_mut().filter_map(|client| client.holding.as_mut());
        let Some(holding) = holdings.find(|holding| holding.fence == fence) else { return false };
        holding.signed = signed;
        true
    }

    fn sign(&mut self, client: usize) -> Result<bool, String> {
        let now = self.now;
        let Some(holding) = self.clients[client].holding.as_mut() else { return Ok(false) };
        let Some(nonce) = holding.nonce.filter(|_| holding.until > now) else { return Ok(false) };
        match holding.signed {
            Signed::Nothing => {}
            // A second one, under the same lease.
            Signed::Accepted if self.bounds.series && !holding.again => holding.again = true,
            _ => return Ok(false),
        }
        let nonce = nonce + u64::from(holding.signed == Signed::Accepted);
        (holding.nonce, holding.signed) = (Some(nonce), Signed::Untold);
        let (account, fence) = (holding.account, holding.fence);
        self.accounts[account].sign(nonce, fence)?;
        Ok(true)
    }

    fn ask(&mut self, client: usize, ask: Ask, fate: Fate) -> Result<bool, String> {
        let asking = &self.clients[client];
        if asking.asked.is_some() {
            return Ok(false);
        }
        let Some(request) = self.request(asking, ask) else { return Ok(false) };
        let here = &mut self.clients[client];
        if matches!(ask, Ask::Release(_)) {
            here.holding = None;
        }
        here.sequence += 1;
        let lane = Lane { client: here.name, number: 0, sequence: here.sequence };
        let not_after = Some(self.now + VALIDITY);
        let envelope =
            Envelope { lane: Some(lane), not_after, requests: vec![request], ..Envelope::default() };
        let asked = Asked { envelope, sent: self.now, answer: None };
        match fate {
            Fate::Late => self.clients[client].asked = Some(asked),
            Fate::Unheard => self.clients[client].asked = Some(self.arrive(asked)?.0),
            Fate::Answered => {
                let (asked, answer) = self.arrive(asked)?;
                self.hear(client, asked, answer);
            }
        }
        Ok(true)
    }

    fn request(&self, client: &Client, ask: Ask) -> Option<Request> {
        let holding = client.holding;
        let lease =
            holding.map(|holding| LeaseRef { slot: id(holding.account), fence: holding.fence, place: 0 });
        let claim = |choice| {
            let holder = client.name << 32 | u128::from(client.sequence);
            let max_hold = if self.bounds.bounded { HOLD } else { 0 };
            Request::Claim(Claim { holder, ttl: TTL, max_hold, ..asking(choice) })
        };
        match ask {
            Ask::Any if holding.is_none() => {
                Some(claim(Choice::Any { strategy: Strategy::LeastRecent, least: 1, most: 1 }))
            }
            Ask::This if holding.is_none() => Some(claim(Choice::Among { slots: vec![id(0)], count: 1 })),
            Ask::Any | Ask::This => None,
            Ask::Renew => Some(Request::Renew { lease: lease?, ttl: TTL }),
            Ask::Resync if !self.bounds.signs => None,
            Ask::Resync => {
                let holding = holding.filter(|holding| holding.nonce.is_none())?;
                let chain = self.accounts[holding.account].next;
                Some(Request::Resync { lease: lease?, chain, rewind: false, settle: 2 * TICK })
            }
            Ask::Release(says) => {
                let outcome = match (holding?.signed, holding?.nonce) {
                    _ if !says => Outcome::Unsettled,
                    (Signed::Nothing, Some(_)) => Outcome::Unused,
                    (Signed::Nothing, None) => return None,
                    (Signed::Untold, _) => Outcome::Unknown { used: None },
                    (Signed::Accepted, nonce) => Outcome::Used { next: nonce? + 1 },
                    (Signed::Refused, _) => {
                        Outcome::Rejected { expected: Some(self.accounts[holding?.account].next) }
                    }
                };
                Some(Request::Release { lease: lease?, outcome, cooldown: 0 })
            }
        }
    }

    /// An envelope arrives, perhaps not for the first time.
    fn arrive(&mut self, mut asked: Asked) -> Result<(Asked, Answer), String> {
        let Some(first) = &asked.answer else {
            let answer = self.perform(&asked.envelope)?;
            if let Answer::Performed(done) = &answer {
                asked.answer = Some(done.clone());
            }
            return Ok((asked, answer));
        };
        let first = Answer::Performed(first.clone());
        let answer = self.repeat(&asked)?;
        match answer == first {
            true => Ok((asked, answer)),
            false => Err(format!("E2: {answer:?} for {asked:?}, which was performed before")),
        }
    }

    /// What was performed comes again, and changes nothing.
    fn repeat(&mut self, asked: &Asked) -> Result<Answer, String> {
        let before = self.key();
        let answer = self.apply(&asked.envelope);
        if self.key() != before {
            return Err(format!("E2: {asked:?} was performed twice"));
        }
        Ok(answer)
    }

    fn perform(&mut self, envelope: &Envelope) -> Result<Answer, String> {
        let answer = self.apply(envelope);
        let now = self.now;
        let Answer::Performed(done) = &answer else {
            return match envelope.not_after.is_some_and(|last| now > last) {
                true => Ok(answer),
                false => Err(format!("{envelope:?} is stale before its time")),
            };
        };
        if envelope.not_after.is_some_and(|last| now > last) {
            return Err(format!("E1: {envelope:?} is performed after its last moment"));
        }
        self.accounts.iter_mut().for_each(|account| account.pass(now));
        for (request, reply) in envelope.requests.iter().zip(&done.replies) {
            self.observe(request, reply)?;
        }
        Ok(answer)
    }

    fn apply(&mut self, envelope: &Envelope) -> Answer {
        let moment = Moment { wall: self.now, incarnation: "a", up_since: 0 };
        let mut envelope = envelope.clone();
        self.bounds.fault.alter(&self.pool, &mut envelope);
        let answer = self.pool.apply(moment, &envelope);
        self.bounds.fault.befall(&mut self.pool);
        answer
    }

    /// Holds what the pool did against what it may do.
    fn observe(&mut self, request: &Request, reply: &Reply) -> Verdict {
        let now = self.now;
        match (request, reply) {
            (Request::Claim(claim), Reply::Granted(grants)) => {
                let [grant] = &**grants else { return Err(format!("{grants:?} for one")) };
                self.granted(claim, grant)
            }
            (Request::Claim(claim), Reply::Refused { .. }) => {
                let wanted = if matches!(claim.choice, Choice::Any { .. }) { 2 } else { 1 };
                match self.accounts.iter().take(wanted).position(|account| account.is_free(now)) {
                    Some(free) => Err(format!("S7: refused, and {} is free", NAMES[free])),
                    None => Ok(()),
                }
            }
            (Request::Renew { lease, .. }, Reply::Renewed { deadline }) => {
                self.of(lease).renew(lease.fence, *deadline)
            }
            (Request::Release { lease, outcome, .. }, Reply::Released) => {
                self.of(lease).release(now, lease.fence, *outcome)
            }
            (Request::Resync { lease, chain, .. }, Reply::Resynced { next }) if chain == next => {
                self.of(lease).resync(lease.fence, *next)
            }
            (
                Request::Renew { lease, .. } | Request::Release { lease, .. } | Request::Resync { lease, .. },
                Reply::Lost(_),
            ) => self.of(lease).lose(lease.fence),
            (Request::Change { change, .. }, Reply::Changed) => {
                self.accounts[0].change(now, *change);
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn granted(&mut self, claim: &Claim, grant: &Grant) -> Verdict {
        let now = self.now;
        if grant.fence <= self.top {
            return Err(format!("S2: fence {} after {}", grant.fence, self.top));
        }
        self.top = grant.fence;
        let any = matches!(claim.choice, Choice::Any { .. });
        let certain = |account: &Account| account.is_free(now) && !account.is_in_doubt();
        if any && grant.in_doubt() && self.accounts.iter().any(certain) {
            return Err("S10: one in doubt before one that is not".to_owned());
        }
        let account = &mut self.accounts[at(&grant.slot)];
        account.grant(now, grant.fence, grant.deadline, claim.max_hold, grant.nonce)
    }

    fn of(&mut self, lease: &LeaseRef) -> &mut Account {
        &mut self.accounts[at(&lease.slot)]
    }

    /// A client hears an answer.
    fn hear(&mut self, client: usize, asked: Asked, answer: Answer) {
        let here = &mut self.clients[client];
        if let Answer::Performed(done) = answer {
            // Deadlines are counted from the sending.
            let until = |deadline: Micros| asked.sent + deadline.saturating_sub(done.now);
            match (&done.replies[0], &mut here.holding) {
                (Reply::Granted(grants), holding) => {
                    let grant = &grants[0];
                    let nonce = if let NonceRecord::Known(next) = grant.nonce { Some(next) } else { None };
                    let (account, fence) = (at(&grant.slot), grant.fence);
                    let until = until(grant.deadline);
                    *holding =
                        Some(Holding { account, fence, until, nonce, signed: Signed::Nothing, again: false });
                }
                (Reply::Renewed { deadline }, Some(holding)) => {
                    holding.until = holding.until.max(until(*deadline));
                }
                (Reply::Resynced { next }, Some(holding)) => holding.nonce = Some(*next),
                (Reply::Lost(_), holding) => *holding = None,
                _ => {}
            }
        }
        here.last = Some(asked);
    }

    /// What must be so whatever has happened.
    pub fn check(&self) -> Verdict {
        let now = self.now;
        let held = |client: &Client| client.holding.filter(|holding| holding.until > now);
        let holdings: Vec<Holding> = self.clients.iter().filter_map(held).collect();
        if let [one, other] = &*holdings
            && one.account == other.account
        {
            return Err(format!("S1: {one:?} and {other:?} at once"));
        }
        for holding in &holdings {
            let lease = self.accounts[holding.account].lease.as_ref();
            let kept = lease.filter(|lease| lease.fence == holding.fence && lease.until >= holding.until);
            if kept.is_none() {
                return Err(format!("S4: {holding:?} is relied on, and in force is {lease:?}"));
            }
        }
        // Whatever was performed comes again, from those who live and those who do not.
        for client in &self.clients {
            for asked in [&client.last, &client.asked, &client.ghost].into_iter().flatten() {
                if asked.answer.is_some() {
                    self.clone().repeat(asked)?;
                }
            }
        }
        self.goes_on()
    }

    /// Both accounts can be had again if nobody does anything but ask: nothing is stuck, and no nonce is lost.
    fn goes_on(&self) -> Verdict {
        let mut later = self.clone();
        later.accounts.iter_mut().for_each(|account| account.flying = None);
        for client in 0..2 {
            later.take(Step::Crash(client))?;
            later.clients[client].ghost = None;
        }
        later.take(Step::Change(SlotChange::Enable))?;
        for _ in 0..5 {
            later.take(Step::Tick)?;
        }
        for client in 0..self.bounds.accounts {
            for ask in [Ask::Any, Ask::Resync] {
                later.take(Step::Ask(client, ask, Fate::Answered))?;
            }
            let had = later.clients[client].holding.is_some();
            if !had || self.bounds.signs && !later.take(Step::Sign(client))? {
                return Err("stuck: an account cannot be had or signed with any more".to_owned());
            }
        }
        Ok(())
    }
}

const NAMES: [&str; 2] = ["x", "y"];
const FIRST: Nonce = 100;

fn id(account: usize) -> SlotId {
    ids(&NAMES).remove(account)
}

fn at(slot: &SlotId) -> usize {
    usize::from(slot.as_str() == NAMES[1])
}
