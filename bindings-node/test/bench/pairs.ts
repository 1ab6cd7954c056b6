// How many leases a second one thread takes and gives back, in memory.
import { type Lease, open } from "../../face/index.js";

const lh = await open();
for (const slots of [10, 1_000]) {
  const ids = Array.from({ length: slots }, (_, index) => `0x${(index + 1).toString(16).padStart(40, "0")}`);
  const pool = await lh.pool(`pool-${slots}`, { slots: ids });
  const rounds = [];
  for (let round = 0; round < 10; round++) {
    const count = 200_000;
    const start = performance.now();
    for (let index = 0; index < count; index++) (pool.tryAcquire() as Lease).giveBack();
    rounds.push((count / (performance.now() - start)) * 1_000);
  }
  rounds.sort((a, b) => a - b);
  const [median, best] = [rounds[5], rounds[9]].map((rate) => Math.round(rate ?? 0).toLocaleString("en"));
  console.log(`${slots} slots: ${median} pairs/s (best of ten rounds: ${best})`);
}
