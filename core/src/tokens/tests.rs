//! Selections of several processes over one lock table, in steps whose order a seed decides.

mod scene;
mod verdicts;
mod wallets;
