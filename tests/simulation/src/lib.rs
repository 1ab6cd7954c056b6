//! A deterministic simulation: the real client, over the store in memory and over the real scripts in an
//! embedded server, on one virtual clock, with everything going wrong that can. One seed is one world.
//!
//! A [`run`] plays a world and has its [`history`] judged by the [`checker`], which shares no code with the
//! library. Bugs of other systems can be [`planted`]: the checker must find them.

pub mod ballots;
pub mod births;
pub mod bundles;
pub mod cells;
pub mod census;
pub mod chain;
pub mod charges;
pub mod checker;
pub mod doubles;
pub mod duel;
pub mod facts;
pub mod flush;
pub mod history;
pub mod ledger_model;
pub mod limit_calls;
pub mod limiting;
pub mod line_model;
pub mod locking;
pub mod majority;
pub mod memory;
pub mod network;
pub mod plan;
pub mod planted;
pub mod quiet_times;
pub mod readiness;
pub mod resources;
pub mod rng;
pub mod run;
pub mod selecting;
pub mod selections;
pub mod server;
pub mod signatures;
pub mod slot_model;
pub mod storm;
pub mod thefts;
pub mod turns;
pub mod voting;
pub mod waits;
pub mod windows;
pub mod workload;
pub mod world;
pub mod writes;
