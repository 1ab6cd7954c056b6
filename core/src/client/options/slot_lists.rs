//! Lists of slots, as languages give them.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::slots::{MAX_PER_REQUEST, MAX_SLOTS, MAX_WEIGHT, SlotSpec};
use crate::value::{Options, Value};

/// Reads which slots are to be looked at; nothing for none.
///
/// # Errors
/// `invalid_argument` naming `slots`.
#[doc(hidden)]
pub fn read_slots(value: &Value) -> Result<Vec<String>> {
    let text = |(value, at): (&Value, u32)| {
        value.as_text().map(str::to_owned).map_err(|error| error.within(&format!("[{at}]")))
    };
    match value {
        Value::Null => Ok(Vec::new()),
        value => value.as_list().and_then(|values| values.iter().zip(0..).map(text).collect()),
    }
    .map_err(|error| error.within("slots"))
}

/// Ids as a language gives them.
pub(in crate::client) fn id_list<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Value {
    Value::List(ids.into_iter().map(|id| id.as_ref().into()).collect())
}

/// Ids and weights as a list for [`slot_specs`].
pub(in crate::client) fn weighted_list<I: AsRef<str>>(slots: impl IntoIterator<Item = (I, u64)>) -> Value {
    let slot = |(id, weight): (I, u64)| Value::map([("id", id.as_ref().into()), ("weight", weight.into())]);
    Value::List(slots.into_iter().map(slot).collect())
}

/// A list of ids without duplicates, at most so many as one request may name.
pub(in crate::client) fn slot_ids(value: &Value) -> Result<Vec<SlotId>> {
    let specs = specs(value, MAX_PER_REQUEST)?;
    Ok(specs.into_iter().map(|(_, spec)| spec.slot).collect())
}

/// A list of ids, or of maps with an id and a weight.
pub(in crate::client) fn slot_specs(value: &Value) -> Result<Vec<(String, SlotSpec)>> {
    specs(value, MAX_SLOTS)
}

/// The rules of [`slot_ids`] for ids that nobody read.
pub(super) fn check_ids(slots: &[SlotId]) -> Result<()> {
    check_number_of_ids(slots.len(), MAX_PER_REQUEST)?;
    let mut accounts = FxHashMap::default();
    let mut ids = slots.iter().zip(0..);
    ids.try_for_each(|(slot, at)| is_there_once(&mut accounts, slot, at, slot.as_str()))
}

fn check_number_of_ids(count: usize, most: usize) -> Result<()> {
    if count == 0 || count > most {
        return Err(Error::invalid("", format_args!("{count} ids; 1 to {most} are allowed")));
    }
    Ok(())
}

/// Two spellings of one account would be two leases of one nonce.
fn is_there_once(accounts: &mut FxHashMap<SlotId, u32>, slot: &SlotId, at: u32, shown: &str) -> Result<()> {
    match accounts.insert(slot.account(), at) {
        Some(_) => Err(Error::invalid(format!("[{at}]"), format_args!("\"{shown}\" is there twice"))),
        None => Ok(()),
    }
}

fn specs(value: &Value, most: usize) -> Result<Vec<(String, SlotSpec)>> {
    let values = value.as_list()?;
    check_number_of_ids(values.len(), most)?;
    let mut specs = Vec::with_capacity(values.len());
    let mut accounts = FxHashMap::<SlotId, u32>::default();
    for (value, at) in values.iter().zip(0..) {
        let (shown, spec) = spec(value).map_err(|error| error.within(&format!("[{at}]")))?;
        is_there_once(&mut accounts, &spec.slot, at, &shown)?;
        specs.push((shown, spec));
    }
    Ok(specs)
}

fn spec(value: &Value) -> Result<(String, SlotSpec)> {
    let (id, weight) = match value {
        Value::Map(_) => {
            let mut options = Options::new(value)?;
            let id = options.take("id", Value::as_text)?;
            let weight = options.take("weight", weight)?;
            options.end()?;
            (id.ok_or_else(|| Error::invalid("id", "is missing"))?, weight.unwrap_or(1))
        }
        plain => (plain.as_text()?, 1),
    };
    Ok((id.to_owned(), SlotSpec { slot: SlotId::new(id)?, weight }))
}

fn weight(value: &Value) -> Result<u8> {
    match value.as_u64_of(format_args!("1 to {MAX_WEIGHT}"))? {
        weight @ 1.. if weight <= u64::from(MAX_WEIGHT) => Ok(weight as u8),
        weight => {
            Err(Error::invalid("", format_args!("{weight} is out of range; 1 to {MAX_WEIGHT} are allowed")))
        }
    }
}
