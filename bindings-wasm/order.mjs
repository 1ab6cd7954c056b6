// In what order a module's functions compress best: what packs them looks back 32 KB only, so those that are alike are to
// stand close to one another.

const REACH = 32 * 1024;

/**
 * The module, its functions named by the place that each should have: wasm-opt sorts them by name, and mends what calls them. So many
 * bytes in a row are what two functions have in common; the first of them is the one at this part of all.
 */
export function ordered(module, piece, start) {
  const { imports, bodies } = functions(module);
  const places = [];
  order(bodies, piece, Math.floor(start * bodies.length)).forEach((at, place) => (places[at] = String(place).padStart(6, "0")));
  const map = Buffer.concat([number(places.length), ...places.flatMap((name, at) => [number(imports + at), text(name)])]);
  const section = Buffer.concat([text("name"), number(1), number(map.length), map]);
  return Buffer.concat([module, number(0), number(section.length), section]);
}

/** Each next one is that of which most has been seen within reach. */
function order(bodies, piece, start) {
  const pieces = bodies.map((body) => {
    const bytes = body.toString("latin1");
    return [...new Set(Array.from(body, (_, at) => bytes.slice(at, at + piece)))];
  });
  const holders = new Map();
  for (const piece of pieces.flat()) holders.set(piece, []);
  pieces.forEach((held, at) => held.forEach((piece) => holders.get(piece).push(at)));
  /** How many of its pieces each function has in common with those within reach, and how often each piece is there. */
  const common = bodies.map(() => 0);
  const seen = new Map();
  const count = (at, by) => {
    for (const piece of pieces[at]) {
      const before = seen.get(piece) ?? 0;
      seen.set(piece, before + by);
      if (before === 0 || before + by === 0) holders.get(piece).forEach((holder) => (common[holder] += by));
    }
  };
  const left = new Set(bodies.keys());
  const chosen = [];
  for (let within = 0, first = 0; left.size > 0; ) {
    let [best, most] = chosen.length > 0 ? [undefined, -1] : [start, Infinity];
    for (const at of left) {
      const share = common[at] / pieces[at].length;
      if (share > most) [best, most] = [at, share];
    }
    left.delete(best);
    chosen.push(best);
    count(best, 1);
    within += bodies[best].length;
    for (; within > REACH; first++) {
      within -= bodies[chosen[first]].length;
      count(chosen[first], -1);
    }
  }
  return chosen;
}

/** How many functions are imported, and the bodies of the others. */
function functions(module) {
  const section = (kind) => {
    for (let at = 8; at < module.length; ) {
      const [length, from] = read(module, at + 1);
      if (module[at] === kind) return from;
      at = from + length;
    }
    throw new Error(`the module has no section ${kind}`);
  };
  const imports = WebAssembly.Module.imports(new WebAssembly.Module(module)).filter(({ kind }) => kind === "function");
  const bodies = [];
  let [left, at] = read(module, section(10));
  for (; left > 0; left--) {
    const [length, from] = read(module, at);
    at = from + length;
    bodies.push(module.subarray(from, at));
  }
  return { imports: imports.length, bodies };
}

/** An unsigned number of LEB128, and where it ends. */
function read(module, at) {
  for (let value = 0, shift = 0; ; shift += 7) {
    const byte = module[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function number(value) {
  return value < 128 ? Buffer.of(value) : Buffer.concat([Buffer.of((value & 127) | 128), number(value >>> 7)]);
}

function text(value) {
  return Buffer.concat([number(value.length), Buffer.from(value)]);
}
