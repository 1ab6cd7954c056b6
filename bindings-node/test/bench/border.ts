// What a call across the border costs, by the shape of its result.
import { trial } from "../trial.js";

const cells = new BigUint64Array(8);
const shapes = new trial.Shapes(cells);
const handle = trial.openHandle();
const options = { ttl: 30, priority: 1 };

/** The face's own object, filled from the cells. */
class Lease {
  readonly slot = Number(cells[0]);
  readonly fence = cells[1];
  readonly deadline = Number(cells[2]);
  readonly nonce = cells[3];
  readonly doubt = cells[4] !== 0n;
}

let sink = 0;
for (const [shape, call] of Object.entries<() => void>({
  "function: nothing": () => trial.bareNothing(),
  "function: number": () => (sink += trial.bareNumber(30, 1)),
  "function: cells passed": () => (sink += trial.handleCells(handle, 30, 1, cells)),
  "function: options as a Value, back": () => trial.echo(options),
  "method: number": () => (sink += shapes.number(30, 1)),
  "method: text": () => (sink += shapes.text(30, 1).length),
  "method: plain object of 5": () => (sink += shapes.plain(30, 1).fence),
  "method: Value map of 5": () => (sink += shapes.value(30, 1).fence),
  "method: class instance": () => shapes.instance(30, 1),
  "method: cells held": () => (sink += shapes.heldCells(30, 1)),
  "method: cells passed": () => (sink += shapes.passedCells(30, 1, cells)),
  "pair by functions, with a Lease": () => {
    trial.handleCells(handle, 30, 1, cells);
    const lease = new Lease();
    cells[1] = lease.fence ?? 0n;
    sink += trial.handleCells(handle, lease.slot, 1, cells);
  },
  "pair by methods, with a Lease": () => {
    shapes.heldCells(30, 1);
    const lease = new Lease();
    cells[1] = lease.fence ?? 0n;
    sink += shapes.heldCells(lease.slot, 1);
  },
})) {
  const rounds = Array.from({ length: 5 }, () => time(call));
  console.log(`${shape.padEnd(36)} ${Math.min(...rounds).toFixed(0).padStart(6)} ns`);
}

/** Nanoseconds a call. */
function time(call: () => void): number {
  const count = 200_000;
  const start = process.hrtime.bigint();
  for (let index = 0; index < count; index++) call();
  return Number(process.hrtime.bigint() - start) / count;
}
