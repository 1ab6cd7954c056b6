//! Administration of a pool. Every change is in the store, so all processes see it at once.

use std::time::Duration;

use super::acquisition::no_slot;
use super::definition;
use super::lease::unexpected;
use crate::Micros;
use crate::client::Pool;
use crate::client::builders::micros;
use crate::client::options::{Unit, check_rest, id_list, rest, slot_specs, weighted_list};
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::nonce::Nonce;
use crate::runtime::Runtime;
use crate::slots::{MAX_PER_REQUEST, Reply, Request, SlotChange, SlotView, State};
use crate::store::{Store, StorePool};
use crate::value::Value;

/// How many slots a pool has, and where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// All.
    pub total: u32,
    /// Those that can be claimed now.
    pub ready: u32,
    /// Those of the ready ones whose nonce is in doubt.
    pub in_doubt: u32,
    /// Those that are leased or rest.
    pub busy: u32,
    /// How long nothing is granted because the store may have lost leases, in microseconds; 0 normally.
    pub quiet_micros: Micros,
    /// The slots that were asked for and are there.
    pub slots: Vec<SlotState>,
}

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotState {
    /// Its record.
    pub view: SlotView,
    /// How long its lease or its rest still lasts, in microseconds.
    pub left_micros: Micros,
}

impl<S: Store, R: Runtime> Pool<S, R> {
    /// Adds slots, and says how many are new; those that are there get the weight 1. This handle leases them only if it was
    /// opened without slots of its own.
    ///
    /// # Errors
    /// `invalid_argument`; `store_unavailable`.
    pub async fn add<I: AsRef<str>>(&self, slots: impl IntoIterator<Item = I>) -> Result<u32> {
        self.add_by(&id_list(slots)).await
    }

    /// The same with weights, 1 to 255.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub async fn add_weighted<I: AsRef<str>>(
        &self,
        slots: impl IntoIterator<Item = (I, u64)>,
    ) -> Result<u32> {
        self.add_by(&weighted_list(slots)).await
    }

    /// The same of what a language gives: ids, or maps with id and weight.
    ///
    /// # Errors
    /// As [`Self::add`].
    #[doc(hidden)]
    pub async fn add_by(&self, slots: &Value) -> Result<u32> {
        let slots = slot_specs(slots).map_err(|error| error.within("slots"))?;
        let lag = self.core.courier.pool().lag();
        let definition = definition(&self.core.options, &slots, lag);
        self.core.define(&definition).await
    }

    /// Forgets a slot, and with it what is known of its nonce, after its lease if it has one, and the rest of its doubt if it is in
    /// doubt, of which no other change makes it stay: for a rest, disable it. It comes back if a process that names it opens the pool, or the store loses its memory while
    /// one does: take what must stay away out of every list.
    ///
    /// # Errors
    /// `invalid_argument` if there is no such slot; `store_unavailable`.
    pub async fn remove(&self, slot: &str) -> Result<()> {
        self.apply(slot, SlotChange::Remove).await
    }

    /// Hands a slot out again. Ends a quarantine, not a cooldown.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn enable(&self, slot: &str) -> Result<()> {
        self.apply(slot, SlotChange::Enable).await
    }

    /// Hands a slot out no more, also by its name, until it is enabled; a lease that it has is not renewed.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn disable(&self, slot: &str) -> Result<()> {
        self.apply(slot, SlotChange::Disable).await
    }

    /// Hands a slot out no more; a lease that it has may be renewed until it is given back. Then it is disabled.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn drain(&self, slot: &str) -> Result<()> {
        self.apply(slot, SlotChange::Drain).await
    }

    /// Hands a slot out no more for so long; its nonce is in doubt afterwards.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn quarantine(&self, slot: &str, time: Duration) -> Result<()> {
        let time = micros(time);
        check_rest("time", time)?;
        self.apply(slot, SlotChange::Quarantine(time)).await
    }

    /// Ends the lease of a slot by force, for a holder that is known to be dead: one that lives believes in its lease until its
    /// next renewal, or to its deadline. The nonce is in doubt.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn break_lease(&self, slot: &str) -> Result<()> {
        self.apply(slot, SlotChange::Break).await
    }

    /// Changes a slot by one of the six verbs above, for languages that name it; `time` is for those that take
    /// one.
    ///
    /// # Errors
    /// As [`Self::remove`].
    #[doc(hidden)]
    pub async fn change(&self, verb: &str, slot: &str, time: &Value, unit: Unit) -> Result<()> {
        let change = match verb {
            "remove" => SlotChange::Remove,
            "enable" => SlotChange::Enable,
            "disable" => SlotChange::Disable,
            "drain" => SlotChange::Drain,
            "quarantine" => quarantine(time, unit)?,
            "break_lease" => SlotChange::Break,
            other => return Err(Error::invalid("verb", format_args!("\"{other}\" is none of a pool's"))),
        };
        self.apply(slot, change).await
    }

    /// Counts the slots.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn census(&self) -> Result<Census> {
        self.inspect::<&str>(&[]).await
    }

    /// Counts the slots, and looks at those that are named (at most 1,000).
    ///
    /// # Errors
    /// `invalid_argument`; `store_unavailable`.
    pub async fn inspect<I: AsRef<str>>(&self, slots: &[I]) -> Result<Census> {
        if slots.len() > MAX_PER_REQUEST {
            return Err(Error::invalid("slots", format_args!("at most {MAX_PER_REQUEST} at once")));
        }
        let mut ids = Vec::with_capacity(slots.len());
        for (id, at) in slots.iter().zip(0..) {
            let id =
                SlotId::new(id.as_ref()).map_err(|error| error.within(&format!("[{at}]")).within("slots"))?;
            ids.push(id);
        }
        match self.core.ask(Request::Inspect { slots: ids }).await? {
            (Reply::Inspected { slots, total, ready, in_doubt, due, quiet_until, .. }, now, _) => {
                let state = |view: SlotView| {
                    let due = matches!(view.state, State::Leased | State::Cooling);
                    SlotState { left_micros: if due { view.until.saturating_sub(now) } else { 0 }, view }
                };
                let slots = slots.into_iter().map(state).collect();
                Ok(Census {
                    total,
                    ready,
                    in_doubt,
                    busy: due,
                    quiet_micros: quiet_until.saturating_sub(now),
                    slots,
                })
            }
            (other, ..) => Err(unexpected(&other)),
        }
    }

    /// The ids of all slots, in order. Costs the server time in proportion to their number.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn list(&self) -> Result<Vec<String>> {
        match self.core.ask(Request::List).await?.0 {
            Reply::Listed(ids) => Ok(ids.iter().map(|id| id.as_str().to_owned()).collect()),
            other => Err(unexpected(&other)),
        }
    }

    async fn apply(&self, slot: &str, change: SlotChange) -> Result<()> {
        let id = SlotId::new(slot).map_err(|error| error.within("slot"))?;
        match self.core.ask(Request::Change { slot: id, change }).await?.0 {
            Reply::Changed => Ok(()),
            Reply::NoSlot => Err(no_slot("slot", &self.core.name.pool, slot, 1)),
            other => Err(unexpected(&other)),
        }
    }
}

fn quarantine(time: &Value, unit: Unit) -> Result<SlotChange> {
    Ok(SlotChange::Quarantine(rest(time, unit).map_err(|error| error.within("time"))?))
}

impl Census {
    /// How long nothing is granted because the store may have lost leases; zero normally.
    pub fn quiet(&self) -> Duration {
        Duration::from_micros(self.quiet_micros)
    }

    /// As a value; durations in the unit of the language.
    #[doc(hidden)]
    pub fn to_value(&self, unit: Unit) -> Value {
        Value::map([
            ("total", u64::from(self.total).into()),
            ("ready", u64::from(self.ready).into()),
            ("in_doubt", u64::from(self.in_doubt).into()),
            ("busy", u64::from(self.busy).into()),
            ("quiet", Value::Number(unit.count(self.quiet_micros))),
            ("slots", Value::List(self.slots.iter().map(|slot| slot.to_value(unit)).collect())),
        ])
    }
}

impl SlotState {
    /// How long its lease or its rest still lasts.
    pub fn left(&self) -> Duration {
        Duration::from_micros(self.left_micros)
    }

    fn to_value(&self, unit: Unit) -> Value {
        let view = &self.view;
        let in_doubt = matches!(view.nonce, crate::nonce::NonceRecord::InDoubt { .. });
        let floor: Option<Nonce> = view.nonce.floor();
        Value::map([
            ("slot", view.slot.as_str().into()),
            ("mode", view.mode.as_str().into()),
            ("state", view.state.as_str().into()),
            ("weight", u64::from(view.weight).into()),
            ("fence", view.fence.into()),
            ("holder", format!("{:032x}", view.holder).as_str().into()),
            ("nonce", floor.into()),
            ("in_doubt", Value::Bool(in_doubt)),
            ("left", Value::Number(unit.count(self.left_micros))),
        ])
    }
}
