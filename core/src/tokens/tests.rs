//! Selections of several processes over one lock table, in steps whose order a seed decides.
//!
//! What the seed's design asks for (F) and what known selectors get wrong (U), and the tests of it, here, in
//! `client/tokens/tests.rs` (c), and over a real server in `tests/faults/tests/faults/tokens.rs` (s):
//!
//! | | |
//! |---|---|
//! | F1 additions are seen, F3 unknown wallets | `f1_f3_…`, c `f3_u1_u3_…` |
//! | F2 spends are seen | `f2_…`, s `f15_…` |
//! | F4 one lost token does not restart it | `f4_…` |
//! | F5 any process, F10 one lock table | `f5_f10_u11_…`, s `hot_wallets_…` |
//! | F6 processes come and go, F9 eventual unlock | s `f6_…`, s `f9_…` |
//! | F7 real-time view | `f20_…`; what others lock is seen when it is asked for |
//! | F11 the queue is left half full | `f11_u1_…` |
//! | F12 sums, F14 giving up | `f12_…`, `f14_u5_…`, c `f14_u5_…` |
//! | F13 termination, F17 truthful verdicts | `f13_f17_…`, `limits_…`, c `u6_…`, s `u6_…` |
//! | F15 success keeps the locks | `f15_…`, c `f15_…`, s `f15_…` |
//! | F16 no livelock | `f16_u13_…` |
//! | F18 past a crash | `f18_…`, s `f9_…` |
//! | F19 housekeeping | none is needed: leases end by the store's clock (`slots/tests/named.rs`, s `f9_…`, s `f9_f19_u7_…`) |
//! | F20 subscription | `f20_…` |
//! | F21 local check first | `f21_u2_…` |
//! | F22 permutation, F23 affinity | `stretches.rs`, s `f6_…`: any beginning, and no owner |
//! | F8 other users of the table | s `f8_…`: pages by a cursor and an index, nothing is written or locked |
//! | U1 queue by wallet and type, U3 names | c `f3_u1_u3_…`, `token.rs` |
//! | U2 own locks, U4 foreign locks, U5 cancelled, U6 store errors | `f21_u2_…`, `u4_…`, `f14_u5_…`, s `u6_…` |
//! | U7 time zones, U8 one lock frees another | s `f9_f19_u7_…`, `u8_…`: times are numbers of the store's clock; each token has a lease of its own |
//! | U9 no renewal, no fence | c `u9_…`, c `a_selection_outlasts_…`, c `a_spender_is_not_refused_…` |
//! | U10 work in proportion to the wallet | `u10_u12_…`; `tests/peers`, a million tokens |
//! | U11 the hot token, U12 the blacklist, U13 partial holds | `u11_u12_…`, `u10_u12_…`, `f5_f10_u11_…`, `f16_u13_…`, s `hot_wallets_…` |

mod scene;
mod sharing;
mod verdicts;
mod walks;
mod wallets;
mod worths;
