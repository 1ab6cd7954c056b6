//! Bugs of other systems, planted in doubles of the store and of the transport: the harness must find them all.

mod limits;
mod locks;
mod pools;
mod tokens;

use leasehold::store::redis::{LIMITS_SCRIPT, SCRIPT};

pub use limits::OF_LIMITS;
pub use locks::{OF_LOCKS, OF_ROBBERIES, OF_THEFTS};
pub use pools::{OF_POOLS, OF_QUORUMS};
pub use tokens::OF_TOKENS;

/// A bug and how it is planted.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub fault: PlantedFault,
}

/// Where a bug is.
#[derive(Clone, Copy, Debug)]
pub enum PlantedFault {
    /// In the script: these texts are replaced by those.
    Script(&'static [(&'static str, &'static str)]),
    /// The same in the script of limits.
    Limits(&'static [(&'static str, &'static str)]),
    /// The source of tokens says that there is none when it fails.
    SourceAsEmpty,
    /// The resources that locks guard take every write.
    CarelessResource,
    /// Of several servers half of an even number is enough.
    HalfIsEnough,
    /// The transport tells every second server nothing of releases, and says that it did.
    ReleaseToSome,
    /// The same of renewals.
    RenewalOfSome,
    /// The transport makes deadlines count from the arrival of the reply.
    DeadlineFromReply,
    /// The transport repeats what got no reply, under another lane.
    OtherLane,
    /// The transport reads an error as a grant.
    ErrorAsGrant,
    /// The transport reads an error as "held by others".
    ErrorAsExhausted,
}

use PlantedFault::{Limits, Script};

/// Nothing is noticed of a server that restarted empty: not by who defines the pool anew, nor by who has seen it before.
const EMPTY_RESTART: PlantedFault = Script(&[
    ("if seen > 0 then", "if seen < 0 then"),
    ("elseif up_since + wanted", "elseif seen < 0 and up_since + wanted"),
    ("elseif seen > 0 and seen < epoch and pool[5] < epoch then", "elseif false then"),
]);

impl Planted {
    /// The scripts of slots and of limits, with the bug in one of them.
    ///
    /// # Panics
    /// If the text that the bug replaces is not in the script (any more): the bug must be planted anew.
    pub fn scripts(&self) -> (String, String) {
        match self.fault {
            Script(replacements) => (self.planted(SCRIPT, replacements), LIMITS_SCRIPT.to_owned()),
            Limits(replacements) => (SCRIPT.to_owned(), self.planted(LIMITS_SCRIPT, replacements)),
            _ => (SCRIPT.to_owned(), LIMITS_SCRIPT.to_owned()),
        }
    }

    fn planted(&self, script: &str, replacements: &[(&str, &str)]) -> String {
        // The script stands without its indents, and with the values of its constants.
        let plain = |text: &str| text.split('\n').map(str::trim_start).collect::<Vec<_>>().join("\n");
        let mut script = script.to_owned();
        for (from, to) in replacements {
            let from = plain(from);
            assert!(script.contains(&from), "{}: the script has no {from:?}", self.name);
            script = script.replacen(&from, &plain(to), 1);
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_finds_its_place_in_the_script() {
        for bug in OF_POOLS
            .iter()
            .chain(&OF_LOCKS)
            .chain(&OF_THEFTS)
            .chain(&OF_ROBBERIES)
            .chain(&OF_LIMITS)
            .chain(&OF_TOKENS)
            .chain(&OF_QUORUMS)
        {
            let (slots, limits) = bug.scripts();
            assert_eq!(slots != SCRIPT, matches!(bug.fault, Script(_)), "{}", bug.name);
            assert_eq!(limits != LIMITS_SCRIPT, matches!(bug.fault, Limits(_)), "{}", bug.name);
        }
    }
}
