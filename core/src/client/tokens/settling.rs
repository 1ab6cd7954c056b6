//! Tokens that were spent, for as long as they rest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::Micros;

/// Tokens that were spent, and until when they rest. A busy wallet has hundreds of thousands, of which none is looked at but those
/// that come, end or are over.
#[derive(Debug, Default)]
pub(super) struct Settling {
    until: BTreeMap<Arc<str>, Micros>,
    /// All of them, and some that have ended, by when they came: all rest for as long.
    order: VecDeque<(Arc<str>, Micros)>,
}

impl Settling {
    /// These rest for so long from now, and of others it is forgotten that they did.
    pub fn rest(&mut self, ids: impl Iterator<Item = Arc<str>>, now: Micros, time: Micros) {
        self.forget_before(now);
        for id in ids {
            self.until.insert(id.clone(), now + time);
            self.order.push_back((id, now + time));
        }
    }

    /// This one rests no longer; whether it did.
    pub fn end(&mut self, id: &Arc<str>) -> bool {
        self.until.remove(id).is_some()
    }

    fn forget_before(&mut self, now: Micros) {
        while let Some((id, until)) = self.order.pop_front_if(|(_, until)| *until <= now) {
            // It may have come again since.
            if self.until.get(&id) == Some(&until) {
                self.until.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids<const N: usize>(ids: [&str; N]) -> impl Iterator<Item = Arc<str>> {
        ids.map(Arc::from).into_iter()
    }

    #[test]
    fn one_ends_once_and_is_forgotten_as_it_is_over() {
        let mut settling = Settling::default();
        settling.rest(ids(["a", "b", "c"]), 0, 10);
        assert!(settling.end(&"b".into()) && !settling.end(&"b".into()));
        settling.rest(ids(["d"]), 9, 10);
        assert!(settling.end(&"a".into()));
        settling.rest(ids(["e"]), 10, 10);
        assert!(!settling.end(&"c".into()) && settling.end(&"d".into()));
        assert_eq!((settling.until.len(), settling.order.len()), (1, 2));
    }

    #[test]
    fn one_that_comes_again_rests_to_its_later_end() {
        let mut settling = Settling::default();
        settling.rest(ids(["a"]), 0, 10);
        settling.rest(ids(["a"]), 5, 10);
        settling.rest(ids([]), 12, 10);
        assert!(settling.end(&"a".into()));
        settling.rest(ids([]), 15, 10);
        assert!(settling.until.is_empty() && settling.order.is_empty());
    }
}
