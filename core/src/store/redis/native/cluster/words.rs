//! What nodes say of who serves a slot, and who of them is believed.

use ::redis::{Client, ConnectionAddr};

use crate::store::redis::native::at;
use crate::store::redis::transport::Resp;

/// Asks a node for the epoch of its cluster, which grows with every failover.
pub(super) const INFO: [&str; 2] = ["CLUSTER", "INFO"];

pub(super) struct Word {
    /// The latest that the node knows; 0 if it must not say it.
    pub epoch: u64,
    pub serves: Client,
    /// Whether it says so of itself.
    pub of_itself: bool,
}

pub(super) struct Words {
    said: Vec<Word>,
    /// Who served the slot until now.
    hand: ConnectionAddr,
    /// Who did before it, and was left for another.
    left: Option<ConnectionAddr>,
}

impl Words {
    pub fn new(hand: ConnectionAddr, left: Option<ConnectionAddr>) -> Self {
        Words { said: Vec::new(), hand, left }
    }

    pub fn hear(&mut self, word: Word) {
        self.said.push(word);
    }

    /// How many are to be heard yet of so many; one more where as many say one thing as say another, and 0 if that is enough.
    pub fn lack(&self, of: usize) -> usize {
        let agreed = self.most().is_some_and(|(_, votes, latest)| 2 * votes > latest);
        of.saturating_sub(self.said.len()).max(usize::from(!agreed))
    }

    /// What is said by whoever is believed. A node that was left for another is not gone back to for one voice: that may be cut off along with it.
    pub fn most_credible(&self) -> Option<&Word> {
        let (word, ..) = self.most()?;
        (self.said.len() > 1 || !self.is_left(word)).then_some(word)
    }

    /// What most of those say that know the latest, how many, and of how many. Of as many for one as for another rather not who
    /// was left, then who says so of itself, then another than until now: those who have not heard of it yet name that.
    fn most(&self) -> Option<(&Word, usize, usize)> {
        let epoch = self.said.iter().map(|word| word.epoch).max()?;
        let latest = || self.said.iter().filter(|word| word.epoch == epoch);
        let votes = |word: &Word| latest().filter(|other| at(&other.serves) == at(&word.serves)).count();
        let rank =
            |word: &Word| (votes(word), !self.is_left(word), word.of_itself, *at(&word.serves) != self.hand);
        let most = latest().max_by_key(|word| rank(word))?;
        Some((most, votes(most), latest().count()))
    }

    fn is_left(&self, word: &Word) -> bool {
        self.left.as_ref() == Some(at(&word.serves))
    }
}

/// The epoch in an answer to [`INFO`].
pub(super) fn epoch(info: &Resp) -> u64 {
    let Resp::Text(info) = info else { return 0 };
    let said = info.split_once("cluster_current_epoch:").map(|(_, rest)| rest);
    let digits = said.and_then(|said| said.split(|letter: char| !letter.is_ascii_digit()).next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> Client {
        Client::open(format!("redis://127.0.0.1:{port}")).unwrap()
    }

    /// Of the first node, of which others say this: the epoch, who serves, and whether it says so of itself.
    fn heard(left: Option<u16>, said: &[(u64, u16, bool)]) -> Words {
        let mut words = Words::new(at(&client(1)).clone(), left.map(|left| at(&client(left)).clone()));
        for &(epoch, serves, of_itself) in said {
            words.hear(Word { epoch, serves: client(serves), of_itself });
        }
        words
    }

    #[test]
    fn the_latest_word_of_most_is_believed() {
        let moved = false;
        for (left, said, port, lack) in [
            (None, &[][..], None, 2),
            (None, &[(0, 1, moved)], Some(1), 1),
            (None, &[(0, 1, moved), (0, 1, moved)], Some(1), 0),
            (None, &[(11, 1, moved), (12, 2, moved)], Some(2), 0),
            (None, &[(12, 2, moved), (11, 1, moved)], Some(2), 0),
            // Who has not heard of the next yet names the one of before.
            (None, &[(0, 1, moved), (0, 2, moved)], Some(2), 1),
            (None, &[(0, 2, moved), (0, 1, moved)], Some(2), 1),
            (None, &[(0, 2, moved), (0, 1, moved), (0, 1, moved)], Some(1), 0),
            (None, &[(0, 3, true), (0, 2, moved)], Some(3), 1),
            // Who was left is gone back to for two, or for one that knows more than another.
            (Some(2), &[(0, 2, moved)], None, 1),
            (Some(2), &[(0, 2, true), (0, 1, moved)], Some(1), 1),
            (Some(2), &[(0, 2, moved), (0, 2, moved)], Some(2), 0),
            (Some(2), &[(12, 1, moved), (13, 2, moved)], Some(2), 0),
        ] {
            let words = heard(left, said);
            assert_eq!(
                words.most_credible().map(|word| at(&word.serves)),
                port.map(client).as_ref().map(at),
                "{said:?}"
            );
            assert_eq!(words.lack(2), lack, "{said:?}");
        }
    }

    #[test]
    fn the_epoch_is_found_in_what_a_node_says_of_its_cluster() {
        let said = |text: &str| epoch(&Resp::Text(text.to_owned()));
        assert_eq!(said("cluster_state:ok\r\ncluster_current_epoch:6\r\ncluster_my_epoch:2\r\n"), 6);
        // As the driver has it of RESP3.
        assert_eq!(said(r#"VerbatimString { format: Text, text: "cluster_current_epoch:6\r\nc" }"#), 6);
        assert_eq!(said("cluster_state:ok\r\n"), 0);
        assert_eq!(epoch(&Resp::Error("NOPERM no".to_owned())), 0);
    }
}
