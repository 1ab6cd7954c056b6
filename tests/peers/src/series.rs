//! Figures, and how they are taken: in rounds, so that what is compared is measured side by side.

use std::time::Duration;

use serde_json::json;

/// How long and how often is measured.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many rounds there are; each measures everything once.
    pub rounds: usize,
    /// How long one measurement lasts.
    pub time: Duration,
}

impl Pace {
    /// For figures.
    pub const FULL: Pace = Pace { rounds: 5, time: Duration::from_millis(700) };
    /// To see that everything works.
    pub const QUICK: Pace = Pace { rounds: 1, time: Duration::from_millis(200) };

    /// How often to do what is to be done so often for figures.
    pub fn count(self, often: usize) -> usize {
        if self.rounds == Pace::QUICK.rounds { often / 10 } else { often }
    }

    /// For what needs longer to show its speed.
    pub fn times(self, factor: u32) -> Duration {
        self.time * factor
    }
}

/// One thing that is measured, round by round.
#[derive(Debug)]
pub struct Series {
    name: String,
    subject: &'static str,
    samples: Vec<f64>,
}

impl Series {
    /// `name` says what is done, `subject` who does it.
    pub fn new(name: impl Into<String>, subject: &'static str) -> Self {
        Series { name: name.into(), subject, samples: Vec::new() }
    }

    /// Adds the figure of a round.
    pub fn add(&mut self, sample: f64) {
        self.samples.push(sample);
    }

    /// Writes the figures of all rounds.
    pub fn print(&self, unit: &str) {
        let line = json!({
            "name": self.name, "subject": self.subject, "language": "rust", "unit": unit, "samples": self.samples,
        });
        println!("{line}");
    }
}
