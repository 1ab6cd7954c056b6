//! What locks and accounts guard: a resource for each name, which looks at the fences of those who write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use leasehold::fence::FenceGuard;

use crate::history::{History, What};
use crate::world::{NATURE, World, unpoisoned};

/// A handle of all resources of a world.
#[derive(Clone)]
pub struct Resources {
    world: World,
    history: History,
    guards: Arc<Mutex<BTreeMap<String, FenceGuard>>>,
    /// Whether they take every write: a bug.
    careless: bool,
}

impl Resources {
    /// Those of a world.
    pub fn new(world: &World, history: &History, careless: bool) -> Self {
        Resources { world: world.clone(), history: history.clone(), guards: Arc::default(), careless }
    }

    /// A write sets out, and arrives after so long, whatever becomes of its sender.
    pub fn write(&self, name: &str, fence: u64, flight: u64) {
        let (resources, name) = (self.clone(), name.to_owned());
        self.world.spawn(NATURE, async move {
            resources.world.sleep(flight).await;
            resources.admit(&name, fence);
        });
    }

    /// Something arrives that is done under a fence; whether it is taken.
    pub fn admit(&self, name: &str, fence: u64) -> bool {
        let accepted = self.careless || {
            let mut guards = unpoisoned(&self.guards);
            guards.entry(name.to_owned()).or_default().admit(fence).is_ok()
        };
        let wrote = What::Wrote { slot: name.to_owned(), fence, accepted };
        self.history.record(self.world.now(), NATURE, wrote);
        accepted
    }
}
