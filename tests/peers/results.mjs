/** The series of one run, and what they say of each other. */
export class Results {
  #series = new Map();

  add({ name, subject, language, unit, samples }) {
    this.#series.set(`${language} | ${name} | ${subject}`, { name, subject, language, unit, samples });
  }

  /** The median of a series. */
  value(key) {
    return median(this.#samples(key));
  }

  /** How many times as fast one series is as another, as the median over the rounds. */
  ratio(key, peer) {
    const [own, others] = [this.#samples(key), this.#samples(peer)];
    return median(own.map((sample, round) => sample / others[round]).filter(Number.isFinite));
  }

  /** How many times as fast the fastest is as the slowest. */
  spread(keys) {
    const rounds = Math.min(...keys.map((key) => this.#samples(key).length));
    const spreads = Array.from({ length: rounds }, (_, round) => {
      const samples = keys.map((key) => this.#samples(key)[round]);
      return Math.max(...samples) / Math.min(...samples);
    });
    return median(spreads);
  }

  /** The rows of bench.json: who does the same thing in the same language is a peer. */
  rows() {
    return [...this.#series.entries()].map(([key, { name, subject, language, unit }]) => {
      const peers = [...this.#series.entries()].filter(
        ([other, series]) => other !== key && series.name === name && series.language === language,
      );
      const ratios = peers.map(([other, series]) => [series.subject, this.ratio(key, other)]);
      const ratio_to = ratios.length ? Object.fromEntries(ratios) : null;
      return { name, subject, language, value: this.value(key), unit, ratio_to };
    });
  }

  #samples(key) {
    return this.#series.get(key)?.samples ?? [];
  }
}

/** NaN of nothing. */
function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}
