//! What the selections of a wallet's currency share in this process.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::Micros;
use crate::client::{Runtime, runtime};
use crate::error::{Error, Result};
use crate::tokens::{Candidates, MAX_TOKEN_BYTES};

/// The tokens of a wallet and currency.
#[derive(Debug)]
pub(super) struct Purse {
    pub currency: Arc<str>,
    pool: Mutex<Candidates>,
    /// Who asks the source.
    asking: futures_util::lock::Mutex<()>,
    /// How many pages came.
    pages: AtomicU64,
    /// Those who pause, in the order in which they began to.
    bells: Mutex<VecDeque<oneshot::Sender<()>>>,
}

impl Purse {
    pub fn new(currency: Arc<str>, seed: u64, max_age: Micros) -> Result<Self> {
        if currency.len() > MAX_TOKEN_BYTES {
            return Err(Error::invalid(
                "currency",
                format_args!("at most {MAX_TOKEN_BYTES} bytes are allowed"),
            ));
        }
        Ok(Purse {
            currency,
            pool: Mutex::new(Candidates::new(seed, max_age)),
            asking: futures_util::lock::Mutex::default(),
            pages: AtomicU64::new(0),
            bells: Mutex::default(),
        })
    }

    pub fn pool(&self) -> MutexGuard<'_, Candidates> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for one's turn to ask the source.
    pub async fn turn(&self) -> futures_util::lock::MutexGuard<'_, ()> {
        self.asking.lock().await
    }

    pub fn pages(&self) -> u64 {
        self.pages.load(Relaxed)
    }

    pub fn note_page(&self) {
        self.pages.fetch_add(1, Relaxed);
    }

    /// Pauses for so long, or until something comes free here.
    pub async fn pause<R: Runtime>(&self, runtime: &R, time: Micros) {
        let (bell, rung) = oneshot::channel();
        {
            let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
            bells.retain(|bell| !bell.is_canceled());
            bells.push_back(bell);
        }
        runtime::by(runtime, runtime.now() + time, rung).await;
    }

    /// How many pause.
    pub fn waiting(&self) -> usize {
        let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.iter().filter(|bell| !bell.is_canceled()).count()
    }

    /// Something came free: the first who pauses looks again.
    pub fn ring(&self) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(bell) = bells.pop_front() {
            if bell.send(()).is_ok() {
                return;
            }
        }
    }
}
