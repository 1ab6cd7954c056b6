//! The walks through all pages of a source, one after another.

use crate::Micros;

/// The walk that is under way, and the last one that came to its end.
#[derive(Debug, Default)]
pub(super) struct Walk {
    number: u32,
    /// When it began; nothing if none is under way.
    began: Option<Micros>,
    cursor: Option<String>,
    /// When the last one began that came to its end, and its number.
    complete: Option<(Micros, u32)>,
}

impl Walk {
    /// Where the next page begins; a walk begins if none is under way.
    pub fn next_page(&mut self, now: Micros) -> Option<String> {
        if self.began.is_none() {
            self.number = self.number.wrapping_add(1);
            self.began = Some(now);
            self.cursor = None;
        }
        self.cursor.clone()
    }

    /// A page came that began at `after`, with where the one after it begins. Whether the walk came to its end by it; a
    /// page that is not the next one is no part of it.
    pub fn advance(&mut self, after: Option<&str>, next: Option<String>) -> bool {
        let Some(began) = self.began.filter(|_| self.cursor.as_deref() == after) else { return false };
        self.cursor = next;
        let ends = self.cursor.is_none();
        if ends {
            self.began = None;
            self.complete = Some((began, self.number));
        }
        ends
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
