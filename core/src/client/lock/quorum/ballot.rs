//! One round of questions to all servers.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::Micros;
use crate::error::Result;
use crate::runtime::{self, Runtime};

/// What a server answered: leases of all names, why it refuses, or why it could not be asked.
pub(super) type Vote<L> = Result<Vec<L>>;

/// A round of questions. What is granted after it was dropped is given back.
pub(super) struct Ballot<F, L> {
    questions: Vec<Pin<Box<F>>>,
    /// Those that were heard.
    pub votes: Vec<Option<Vote<L>>>,
}

impl<F: Future<Output = Vote<L>>, L> Ballot<F, L> {
    pub fn new(questions: impl Iterator<Item = F>) -> Self {
        let questions: Vec<_> = questions.map(Box::pin).collect();
        let votes = questions.iter().map(|_| None).collect();
        Ballot { questions, votes }
    }

    /// Hears answers until all are there, or it is decided, or until `limit`.
    pub async fn count(
        &mut self,
        runtime: &impl Runtime,
        limit: Micros,
        is_decided: impl Fn(&[Option<Vote<L>>]) -> bool,
    ) {
        let counted = poll_fn(|context| {
            for (question, vote) in self.questions.iter_mut().zip(&mut self.votes) {
                if vote.is_none()
                    && let Poll::Ready(answer) = question.as_mut().poll(context)
                {
                    *vote = Some(answer);
                }
            }
            let ended = self.votes.iter().all(Option::is_some) || is_decided(&self.votes);
            if ended { Poll::Ready(()) } else { Poll::Pending }
        });
        runtime::by(runtime, limit, pin!(counted)).await;
    }

    /// Whether votes are missing.
    pub fn is_open(&self) -> bool {
        self.votes.iter().any(Option::is_none)
    }

    /// The leases of those who granted and were not taken before, a server each.
    pub fn take_granted(&mut self) -> Vec<Vec<L>> {
        let granted = self.votes.iter_mut().flatten().flatten();
        granted.map(std::mem::take).filter(|leases| !leases.is_empty()).collect()
    }
}

/// How many servers granted.
pub(super) fn granted<L>(votes: &[Option<Vote<L>>]) -> usize {
    votes.iter().flatten().filter(|vote| vote.is_ok()).count()
}
