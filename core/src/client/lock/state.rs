//! Who has a lock, and ending that by force.

use std::time::Duration;

use super::Lock;
use crate::Micros;
use crate::client::Unit;
use crate::client::lock::holding::together;
use crate::client::pool::PoolCore;
use crate::client::pool::lease::unexpected;
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::nonce::Outcome;
use crate::runtime::Runtime;
use crate::slots::{LeaseRef, Reply, Request, SlotView, State};
use crate::store::Store;
use crate::value::Value;

/// One name of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockState {
    /// As the caller spelled it.
    pub name: String,
    /// The record of who holds it: the holder, since when, until when, under which fence. Nothing if nobody does.
    pub view: Option<SlotView>,
    /// How long it is still held without a renewal, in microseconds; 0 if it is not.
    pub left_micros: Micros,
}

impl<S: Store, R: Runtime> Lock<S, R> {
    /// Looks at each of its names, in their order: whether somebody holds it, in whatever process.
    ///
    /// # Errors
    /// `store_unavailable`; `invalid_argument` for a lock of a quorum: each of its servers is asked through a handle of its own.
    pub async fn inspect(&self) -> Result<Vec<LockState>> {
        if self.0.electorate.is_some() {
            let message = "asks one server: open each of the quorum's by itself, and inspect the lock there";
            return Err(Error::invalid("inspect", message));
        }
        inspect_at(&self.0.pool, &self.0.names).await
    }

    /// The same as a value; times in the unit of the language.
    ///
    /// # Errors
    /// As [`Self::inspect`].
    #[doc(hidden)]
    pub async fn inspect_by(&self, unit: Unit) -> Result<Value> {
        Ok(Value::List(self.inspect().await?.iter().map(|state| state.to_value(unit)).collect()))
    }

    /// Ends by force what is held of its names as this looks, and nothing that is granted later, for a holder that is known to be dead:
    /// one that lives believes in its lock until its next renewal, or to its deadline. A quorum's ends at all servers, of which a
    /// majority must answer.
    ///
    /// # Errors
    /// `store_unavailable`: some of its names may be held still.
    pub async fn break_lease(&self) -> Result<()> {
        match &self.0.electorate {
            None => break_at(&self.0.pool, &self.0.names).await,
            Some(electorate) => electorate.break_leases(&self.0.names).await,
        }
    }
}

/// Ends what is held of these names at one server: by its fence, so that nothing ends that was granted since, however late this comes.
pub(in crate::client) async fn break_at<S: Store, R: Runtime>(
    core: &PoolCore<S, R>,
    names: &[SlotId],
) -> Result<()> {
    let end = |state: LockState| async move {
        let Some(SlotView { slot, fence, .. }) = state.view else { return Ok(()) };
        match core.release(&LeaseRef { slot, fence, place: 0 }, Outcome::Unused, 0).await? {
            Reply::Released | Reply::Lost(_) => Ok(()),
            other => Err(unexpected(&other)),
        }
    };
    let states = inspect_at(core, names).await?;
    together(states.into_iter().map(|state| Box::pin(end(state)) as _).collect()).await
}

/// Looks at these names at one server.
async fn inspect_at<S: Store, R: Runtime>(core: &PoolCore<S, R>, names: &[SlotId]) -> Result<Vec<LockState>> {
    match core.ask(Request::Inspect { slots: names.to_vec() }).await? {
        (Reply::Inspected { slots, .. }, now, _) => {
            // Those that are there, in the order in which they were asked for.
            let mut views = slots.into_iter().peekable();
            let state = |name: &SlotId| LockState::new(name, views.next_if(|view| view.slot == *name), now);
            Ok(names.iter().map(state).collect())
        }
        (other, ..) => Err(unexpected(&other)),
    }
}

impl LockState {
    fn new(name: &SlotId, view: Option<SlotView>, now: Micros) -> Self {
        let view = view.filter(|view| view.state == State::Leased && view.until > now);
        let left_micros = view.as_ref().map_or(0, |view| view.until.saturating_sub(now));
        LockState { name: name.as_str().to_owned(), view, left_micros }
    }

    /// Whether somebody holds it.
    pub fn is_held(&self) -> bool {
        self.view.is_some()
    }

    /// How long it is still held without a renewal; nothing if it is not.
    pub fn left(&self) -> Duration {
        Duration::from_micros(self.left_micros)
    }

    fn to_value(&self, unit: Unit) -> Value {
        let of_holder = |word: fn(&SlotView, Unit) -> Value| {
            self.view.as_ref().map_or(Value::Null, |view| word(view, unit))
        };
        Value::map([
            ("name", self.name.as_str().into()),
            ("held", Value::Bool(self.is_held())),
            ("holder", of_holder(|view, _| Value::Text(format!("{:032x}", view.holder)))),
            ("fence", of_holder(|view, _| view.fence.into())),
            ("since", of_holder(|view, unit| Value::Number(unit.count(view.since)))),
            ("left", Value::Number(unit.count(self.left_micros))),
        ])
    }
}
