/** The WebAssembly package, in memory. */
import { open } from "leasehold-wasm";
import { accounts, commandLine, measure, repeated } from "./series.mjs";

const SLOTS = 1_000;

const { pace } = commandLine();
const store = await open("memory:");
const pool = await store.pool("wasm", { slots: accounts(SLOTS), ttl: 5_000 });
await measure(
  [
    {
      name: `memory, ${SLOTS} slots, 1 thread`,
      subject: "leasehold",
      language: "wasm",
      run: (time) => repeated(time, () => pool.tryAcquire().giveBack()),
    },
  ],
  pace,
);
await store.close();
