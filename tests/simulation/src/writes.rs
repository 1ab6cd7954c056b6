//! What resources accepted that check fences: no write of a late holder after one of a newer (rule F1).

use std::collections::HashMap;

use crate::census::Census;
use crate::checker::Breach;

/// All writes so far: by resource, the newest fence that it accepted.
#[derive(Debug, Default)]
pub struct Writes(HashMap<String, u64>);

impl Writes {
    /// The newest fence that a resource has accepted; 0 for none.
    pub fn newest(&self, slot: &str) -> u64 {
        self.0.get(slot).copied().unwrap_or_default()
    }

    /// A write under a fence arrived.
    pub fn write(&mut self, slot: &str, fence: u64, accepted: bool, census: &Census) -> Result<(), Breach> {
        let newest = self.0.entry(slot.to_owned()).or_default();
        match (accepted, fence < *newest) {
            (true, false) => *newest = fence,
            (false, true) => census.count("late write refused"),
            (true, true) => {
                let text = format!("{slot} took a write under {fence} after one under {newest}");
                return Err(Breach::new("F1", text));
            }
            (false, false) => {
                let text = format!("{slot} refused a write under {fence}, the newest was {newest}");
                return Err(Breach::new("F1", text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_holder_is_refused_and_nobody_else() {
        let mut writes = Writes::default();
        let mut write = |fence, accepted| writes.write("a", fence, accepted, &Census::default()).is_ok();
        assert!(write(7, true) && write(7, true) && write(9, true));
        assert!(write(7, false) && !write(7, true));
        assert!(!write(9, false) && write(10, true));
    }
}
