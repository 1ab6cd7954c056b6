//! The words of a limit.

use std::time::Duration;

use super::micros;
use crate::Micros;
use crate::client::{Leasehold, Limit, LimitKind, LimitOptions, Outage};
use crate::error::Result;
use crate::id::Name;
use crate::limits::Amount;
use crate::runtime::Runtime;
use crate::store::LimitStore;

/// A limit, opened by [`Self::open`], or registered for each value of an action by [`Self::register`]. What its words mean is said at [`LimitOptions`].
#[must_use = "nothing is opened yet"]
pub struct LimitBuilder<'a, S: LimitStore, R: Runtime> {
    handle: &'a Leasehold<S, R>,
    name: String,
    period: Option<Micros>,
    scope: Option<String>,
    options: LimitOptions,
}

impl<'a, S: LimitStore, R: Runtime> LimitBuilder<'a, S, R> {
    pub(in crate::client) fn new(handle: &'a Leasehold<S, R>, name: &str, max: Amount) -> Self {
        let (name, options) = (name.to_owned(), LimitOptions::new(max, 0));
        LimitBuilder { handle, name, period: None, scope: None, options }
    }

    /// How long a full refill takes, or a window or a budget lasts; [`Duration::ZERO`] limits each request by itself.
    pub fn period(mut self, time: Duration) -> Self {
        self.period = Some(micros(time));
        self
    }

    /// How it is counted: by continuous refill, if this is not said.
    pub fn kind(mut self, kind: LimitKind) -> Self {
        self.options.kind = kind;
        self
    }

    /// Of GCRA, the most at once.
    pub fn burst(mut self, burst: u64) -> Self {
        self.options.burst = Some(burst);
        self
    }

    /// Of a budget, when its periods begin, counted from the Unix epoch: seven days begin on a Thursday.
    pub fn offset(mut self, time: Duration) -> Self {
        self.options.offset = micros(time);
        self
    }

    /// What is allowed while the store cannot be used.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.options.outage = outage;
        self
    }

    /// Limits of one scope can be charged as one.
    pub fn scope(mut self, scope: &str) -> Self {
        self.scope = Some(scope.to_owned());
        self
    }

    /// Opens it. Asks nothing of the store yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `cancelled` if the handle was closed.
    pub fn open(self) -> Result<Limit<R>> {
        let (handle, name, options) = self.said()?;
        handle.limit_with(&name, &options)
    }

    /// Registers it as what an action allows, of which each value has a limit of its own:
    /// [`limit_of`](Leasehold::limit_of) opens that.
    ///
    /// # Errors
    /// As [`Leasehold::register_with`].
    pub fn register(self) -> Result<()> {
        let (handle, action, options) = self.said()?;
        handle.register_with(&action, &options)
    }

    fn said(mut self) -> Result<(&'a Leasehold<S, R>, String, LimitOptions)> {
        self.options.period = self.options.kind.period(self.period)?;
        if let Some(scope) = self.scope {
            self.options.scope = Some(Name::new(&scope).map_err(|error| error.within("scope"))?);
        }
        Ok((self.handle, self.name, self.options))
    }
}
