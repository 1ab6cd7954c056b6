import { guarded } from "./calls.js";
import { native } from "./native.js";

/**
 * The number of something that lives in the addon. Held by the one object that stands for it; when that is
 * collected, so is this, and the addon forgets the thing: a lease is given back.
 */
export class Owned {
  /** Outlives this object, and so must not refer to it. */
  readonly #cell: Cell;

  constructor(number: number, forget: (number: number) => void) {
    this.#cell = { number, forget };
    collected.register(this, this.#cell);
  }

  /** 0 once there is nothing any more. */
  get number(): number {
    return this.#cell.number;
  }

  set number(number: number) {
    this.#cell.number = number;
  }

  /** Has the addon forget the thing now. */
  end(): void {
    const { number, forget } = this.#cell;
    this.number = 0;
    guarded(() => forget(number));
  }
}

interface Cell {
  number: number;
  readonly forget: (number: number) => void;
}

const collected = new FinalizationRegistry<Cell>(({ number, forget }) => {
  if (number === 0) return;
  try {
    forget(number);
  } catch {
    // Nobody could catch it, and the lease has its deadline.
  }
});

/** Registering costs more than all the rest of a lease: those of leases that were given back are used again. */
const spare: Owned[] = [];
const MOST_SPARE = 1_024;

export function ownedLease(number: number): Owned {
  const owned = spare.pop();
  if (!owned) return new Owned(number, native.leaseForget);
  owned.number = number;
  return owned;
}

export function disownLease(owned: Owned): void {
  owned.number = 0;
  if (spare.length < MOST_SPARE) spare.push(owned);
}
