//! A deterministic simulation: the real client, over the store in memory and over the real scripts in an
//! embedded server, on one virtual clock, with everything going wrong that can. One seed is one world.
//!
//! A [`run`] plays a world and has its [`history`] judged by the [`checker`], which shares no code with the
//! library. Bugs of other systems can be [`planted`]: the checker must find them.

pub mod bundles;
pub mod census;
pub mod chain;
pub mod checker;
pub mod doubles;
pub mod facts;
pub mod history;
pub mod line_model;
pub mod locking;
pub mod memory;
pub mod network;
pub mod plan;
pub mod planted;
pub mod readiness;
pub mod rng;
pub mod run;
pub mod server;
pub mod signatures;
pub mod slot_model;
pub mod storm;
pub mod workload;
pub mod world;
