//! Callers that come one after the other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::{Prize, soon};

/// The time between two arrivals: a line is ordered by when the store hears of them, and the way there takes its time.
const APART: Duration = Duration::from_millis(30);
/// How long each holds what it wins. Over a server those behind the first few of a process ask for a ticket as they move
/// up; they have the time of all before them for that.
const HOLD: Duration = Duration::from_millis(20);
const BOUND: Duration = Duration::from_secs(30);

/// Who came, and who was served when.
#[derive(Default)]
pub struct Arrivals {
    callers: Vec<JoinHandle<()>>,
    served: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl Arrivals {
    /// The next caller comes, and gives back soon what it wins.
    pub async fn come(&mut self, prize: &Prize, priority: i16) {
        let (number, prize, served) = (self.callers.len(), prize.clone(), self.served.clone());
        self.callers.push(tokio::spawn(async move {
            let won = prize.win_as(priority).await.expect("served");
            served.lock().unwrap_or_else(PoisonError::into_inner).push((won.fence(), number));
            tokio::time::sleep(HOLD).await;
            won.give_back().await.expect("its own");
        }));
        tokio::time::sleep(APART).await;
    }

    /// How many came.
    pub fn count(&self) -> usize {
        self.callers.len()
    }

    /// Waits until all are served; their numbers, in the order of the fences that they were given.
    ///
    /// # Panics
    /// If somebody is not served in time.
    pub async fn in_order(self) -> Vec<usize> {
        for caller in self.callers {
            soon(BOUND, "the line", caller).await.0.expect("no panic");
        }
        let mut served = std::mem::take(&mut *self.served.lock().unwrap_or_else(PoisonError::into_inner));
        served.sort_unstable();
        served.into_iter().map(|(_, number)| number).collect()
    }
}
