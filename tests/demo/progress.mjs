/**
 * A progress bar on a terminal; elsewhere a line at every quarter.
 */
const WIDTH = 30;

export class Progress {
  #title;
  #total;
  #out;
  #done = 0;
  #refused = 0;
  #ended = false;

  /**
   * @param {string} title
   * @param {number} total
   * @param {{ isTTY?: boolean, write(text: string): unknown }} [out]
   */
  constructor(title, total, out = process.stdout) {
    this.#title = title;
    this.#total = total;
    this.#out = out;
  }

  /** @param {string} outcome of one more payment */
  add(outcome) {
    this.#done++;
    if (outcome === "rejected") this.#refused++;
    const quarter = Math.floor((this.#done * 4) / this.#total);
    const before = Math.floor(((this.#done - 1) * 4) / this.#total);
    if (this.#out.isTTY) this.#out.write(`\r${this.#line()}`);
    else if (quarter > before) this.#out.write(`${this.#line()}\n`);
  }

  settling() {
    if (this.#out.isTTY) this.#out.write(`\r${this.#line()}  waiting for the last block`);
  }

  /** Leaves the bar as it stands. */
  end() {
    if (this.#out.isTTY && !this.#ended) this.#out.write(`\r\x1b[K${this.#line()}\n`);
    this.#ended = true;
  }

  #line() {
    const filled = Math.floor((this.#done * WIDTH) / this.#total);
    const bar = "#".repeat(filled).padEnd(WIDTH, ".");
    return `${this.#title.padEnd(14)} [${bar}] ${this.#done}/${this.#total}  nonce errors ${this.#refused}`;
  }
}
