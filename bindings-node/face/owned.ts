import { native } from "./native.js";

/**
 * The number of something that lives in the addon. Held by the one object that stands for it; when that is
 * collected, so is this, and the addon forgets the thing: a lease is left to run to its deadline.
 *
 * Registering costs more than all the rest of a lease: those of things that were given back are used again.
 */
export class Owned {
  /** Outlives this object, and so must not refer to it. */
  readonly #cell: Cell = { number: 0 };

  private constructor() {
    collected.register(this, this.#cell);
  }

  /** What it was opened through makes no difference here: what nobody has any more is collected. */
  static of(number: number, _opener?: Owned): Owned {
    const owned = spare.pop() ?? new Owned();
    owned.#cell.number = number;
    return owned;
  }

  get number(): number {
    return this.#cell.number;
  }

  /** Whether the thing can still be asked: an addon does not break. */
  get lives(): boolean {
    return true;
  }

  /** Ends what it stands for, which stays there until it is collected. */
  close(end: (number: number) => void): void {
    end(this.number);
  }

  /** The addon has taken the thing, whose number may be another's from now on. The owner must forget this. */
  taken(): void {
    this.#cell.number = 0;
    if (spare.length < MOST_SPARE) spare.push(this);
  }
}

interface Cell {
  /** 0 once there is nothing any more. */
  number: number;
}

const collected = new FinalizationRegistry<Cell>(({ number }) => {
  if (number === 0) return;
  try {
    native.free(number);
  } catch {
    // Nobody could catch it, and the lease has its deadline.
  }
});

const spare: Owned[] = [];
const MOST_SPARE = 1_024;
