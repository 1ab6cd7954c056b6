//! Tests of the machine: tables by topic, properties against a naive model, the odds of its draws.

mod account;
mod choosers;
mod claims;
mod defects;
mod draws;
mod exhaustive;
mod holders;
mod lanes;
mod loss;
mod model;
mod named;
mod oracle;
mod pools;
mod properties;
mod queue;
mod roster;
mod ruling;
mod scene;
mod stealing;
mod times;
mod waiting;

pub(super) use self::model::Handed;
