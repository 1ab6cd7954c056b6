//! The walks through all pages of a source, one after another.

use crate::Micros;

/// The walk that is under way, and the last one that came to its end.
#[derive(Debug, Default)]
pub(super) struct Walk {
    number: u32,
    /// When it began; nothing if none is under way.
    began: Option<Micros>,
    cursor: Option<String>,
    /// A cursor that this walk has passed, how many came since, and after how many one of them takes its place.
    passed: Option<String>,
    since: u64,
    stride: u64,
    /// When the last one began that came to its end, and its number.
    complete: Option<(Micros, u32)>,
}

impl Walk {
    /// Where the next page begins; a walk begins if none is under way.
    pub fn next_page(&mut self, now: Micros) -> Option<String> {
        if self.began.is_none() {
            self.number = self.number.wrapping_add(1);
            self.began = Some(now);
            (self.cursor, self.passed) = (None, None);
            (self.since, self.stride) = (0, 1);
        }
        self.cursor.clone()
    }

    /// Whether a page leads back to where it began, or to where this walk has been: it would go round for ever. Any circle is
    /// noticed, before a few times as many pages came as lead to it and round it, from one cursor that is kept (Brent).
    pub fn leads_back(&self, after: Option<&str>, next: Option<&str>) -> bool {
        let is_next = self.began.is_some() && self.cursor.as_deref() == after;
        next.is_some() && (next == after || is_next && next == self.passed.as_deref())
    }

    /// A page came that began at `after`, with where the one after it begins. When the walk began, if it came to its end by
    /// it; a page that is not the next one is no part of it.
    pub fn advance(&mut self, after: Option<&str>, next: Option<String>) -> Option<Micros> {
        let began = self.began.filter(|_| self.cursor.as_deref() == after)?;
        self.since += 1;
        if self.since >= self.stride {
            (self.passed, self.since) = (next.clone(), 0);
            self.stride = self.stride.saturating_mul(2);
        }
        self.cursor = next;
        if self.cursor.is_some() {
            return None;
        }
        self.began = None;
        self.complete = Some((began, self.number));
        Some(began)
    }

    /// Whether one is under way of which there was a page.
    pub fn has_gone_on(&self) -> bool {
        self.began.is_some() && self.cursor.is_some()
    }

    /// The one that is under way comes to no end.
    pub fn restart(&mut self) {
        self.began = None;
    }

    /// What earlier walks came to know is void.
    pub fn void(&mut self) {
        self.complete = None;
    }

    /// Which walk this is; how many have begun.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether one came to its end that began then or later.
    pub fn is_complete_since(&self, since: Micros) -> bool {
        self.complete.is_some_and(|(began, _)| began >= since)
    }

    /// Whether one came to its end that began when so many had begun: a clock may stand still.
    pub fn is_complete_after(&self, walks: u32) -> bool {
        self.complete.is_some_and(|(_, number)| number.wrapping_sub(walks).cast_signed() > 0)
    }
}
