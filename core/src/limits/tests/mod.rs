//! Tests of the machine: tables by topic, the defects of other limiters by name, properties against an exact model.

mod calendars;
mod clocks;
mod defects;
mod groups;
mod kinds;
mod lanes;
mod losses;
mod model;
mod properties;
mod renewals;
mod reservations;
mod resets;
mod scene;
mod waiters;
mod windows;
