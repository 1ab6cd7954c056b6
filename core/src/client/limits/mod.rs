//! Limits as callers have them: rates, budgets and what is in flight, alone or charged as one.

mod actions;
mod alone;
mod answer;
mod carrier;
#[cfg(test)]
mod elsewhere;
mod limit;
mod line;
mod lobby;
mod options;
mod recent;
mod refusals;
mod reservation;
mod reservation_id;
mod scope;
mod standings;
#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;
mod verbs;

pub(super) use actions::{Actions, open as open_of, read_value};
pub use answer::{LimitAnswer, Said};
pub use limit::Limit;
pub use options::{LimitKind, LimitOptions, Outage, WaitOptions};
pub use reservation::Reservation;
pub(super) use scope::{OpenedScope, Scope, open};
pub use verbs::read_cost;
