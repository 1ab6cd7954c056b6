//! What is limited for each of many by itself: an action that was registered once, and a value, such as who acts.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Mutex;

use super::{Limit, LimitOptions, scope};
use crate::client::Leasehold;
use crate::error::{Error, Result};
use crate::id::Name;
use crate::limits::{Amount, Hashes};
use crate::poison::unpoisoned;
use crate::runtime::Runtime;
use crate::store::LimitStore;
use crate::value::Value;

/// The most that one handle registers: they are what a program does, not who does it.
const MOST_ACTIONS: usize = 1_000;

/// The actions of one handle, each with what it allows.
#[derive(Default)]
pub(in crate::client) struct Actions(Mutex<HashMap<Name, LimitOptions, Hashes>>);

impl Actions {
    /// Registers an action.
    pub fn register(&self, action: &str, options: &LimitOptions) -> Result<()> {
        let action = Name::new(action).map_err(|error| error.within("action"))?;
        options.rule()?;
        let mut actions = unpoisoned(&self.0);
        let count = actions.len();
        match actions.get(&action) {
            Some(known) if known.is_same(options) => Ok(()),
            Some(_) => Err(Error::invalid(
                "action",
                format_args!(
                    "\"{action}\" is registered with other options; register it once, or under another name"
                ),
            )),
            None if count >= MOST_ACTIONS => Err(Error::invalid(
                "action",
                format_args!("{MOST_ACTIONS} are registered, which is the most; tell who acts by the value"),
            )),
            None => {
                actions.insert(action, options.clone());
                Ok(())
            }
        }
    }

    /// The name and the options of the limit that an action has for a value.
    fn of(&self, action: &str, value: &str) -> Result<(Name, LimitOptions)> {
        let action = Name::new(action).map_err(|error| error.within("action"))?;
        let name = Name::of_limit(&action, value).map_err(|error| error.within("value"))?;
        let actions = unpoisoned(&self.0);
        let Some(options) = actions.get(&action) else {
            return Err(Error::invalid(
                "action",
                format_args!("\"{action}\" is not registered with this handle; register it first"),
            ));
        };
        Ok((name, options.clone()))
    }
}

/// The limit of a handle that an action has for a value.
pub(in crate::client) fn open<S: LimitStore, R: Runtime>(
    handle: &Leasehold<S, R>,
    actions: &Actions,
    action: &str,
    value: &impl Display,
) -> Result<Limit<R>> {
    let (name, options) = actions.of(action, &value.to_string())?;
    scope::open_named(handle, name, &options)
}

/// A value as languages give it: text, or a whole number, which is its digits. Some accounts have numbers below zero.
pub(in crate::client) fn read_value(value: &Value) -> Result<String> {
    let signed = |below: bool, size: Amount| format!("{}{size}", if below { "-" } else { "" });
    let text = match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(signed(*number < 0, number.unsigned_abs().into())),
        Value::Number(number) => match Value::Number(number.abs()).as_u64() {
            Ok(size) => Ok(signed(*number < 0.0, size.into())),
            Err(_) => value.as_u64_of(format_args!("-2^53 to 2^53")).map(|size| size.to_string()),
        },
        other => {
            Err(Error::invalid("", format_args!("must be text or a whole number, not {}", other.kind())))
        }
    };
    text.map_err(|error| error.within("value"))
}
