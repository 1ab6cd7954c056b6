// When the module's tasks have their turns, and where.

/** Gives a task its turn; true if it has ended. */
export type Run = (task: number) => boolean;

/** Set by `instance.ts`: how a turn is given, and whether what a request set ends with it. */
export function turnsBy(run: Run, ofRequests: boolean): void {
  [runTask, parted] = [run, ofRequests];
}

/** Has a task run soon; where requests are parted in that in which it was begun, of which it ends too. */
export function wake(task: number, begins: boolean): void {
  if (!parted) {
    if (woken.push(task) === 1) void soon.then(runWoken);
    return;
  }
  if (begins) doors.set(task, new Door(task));
  doors.get(task)?.knock();
}

/** The task that has its turn. */
export function running(): number | undefined {
  return current;
}

/** A task is given up: it has no turn any more. */
export function dismiss(task: number): void {
  doors.delete(task);
}

/** Forgets the tasks of a broken instance. */
export function dismissAll(): void {
  woken = [];
  doors.clear();
}

/**
 * Those whose requests have ended, as it seems: at several looks one after the other they had been called and not come, or were
 * `late`, as a timer of theirs should have rung.
 */
export function gone(now: () => number, late: () => ReadonlySet<number | undefined>): number[] {
  if (doors.size === 0 || now() < nextLook) return [];
  nextLook = now() + APART;
  const awaited = late();
  const silent: number[] = [];
  for (const [task, door] of doors) {
    if (!door.called && !awaited.has(task)) door.silent = 0;
    else if (++door.silent > LOOKS) silent.push(task);
  }
  return silent;
}

/** Where a task has its turns: a promise goes on in the request that made it, whichever settles it. */
class Door {
  called = false;
  /** At how many looks it was awaited in vain. */
  silent = 0;
  readonly #task: number;
  #open!: () => void;

  constructor(task: number) {
    this.#task = task;
    this.#wait();
  }

  knock(): void {
    this.called = true;
    this.#open();
  }

  #wait(): void {
    new Promise<void>((resolve) => (this.#open = resolve)).then(() => {
      if (doors.get(this.#task) !== this) return;
      this.called = false;
      this.silent = 0;
      // First: in its turn it may be called again.
      this.#wait();
      if (turn(this.#task) && doors.get(this.#task) === this) doors.delete(this.#task);
    });
  }
}

/** How many looks nobody is late at who lives, and the milliseconds between two at least. */
const LOOKS = 5;
const APART = 1_000;

/** Not a task of the host's: one that a test's fake clock took, and dropped, would be waited for by all calls to come. */
const soon = Promise.resolve();

let runTask: Run;
let parted = false;
let current: number | undefined;
let nextLook = 0;

/** Those that wait for the next turn of all, where requests are not parted. */
let woken: number[] = [];

const doors = new Map<number, Door>();

/** Those woken meanwhile wait for the next time, so that the host gets its turn too. */
function runWoken(): void {
  const all = woken;
  woken = [];
  all.forEach(turn);
}

function turn(task: number): boolean {
  current = task;
  const ended = runTask(task);
  current = undefined;
  return ended;
}
