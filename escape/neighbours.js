export default async function ({ action }) {
  const rows = [3, 1, 2].map((n) => ({ n, text: String(n) })).sort((a, b) => a.n - b.n);
  const back = JSON.parse(JSON.stringify(rows));
  let caught = "";
  try { null.x; } catch (error) { caught = error.name; }
  await Promise.all(back.map(async (row) => { row.done = true; }));
  const odd = [Object, Array, String, Function, Promise, Error, Map, RegExp].map((c) => Reflect.ownKeys(c.prototype).length).join();
  let own = "";
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const value = globalThis[name];
    for (const holder of [value, value?.prototype]) {
      if (holder === null || (typeof holder !== "object" && typeof holder !== "function") || holder === globalThis) continue;
      if (Object.isFrozen(holder)) own += `${name} frozen `;
      for (const key of Reflect.ownKeys(holder)) {
        const found = Reflect.getOwnPropertyDescriptor(holder, key).value;
        const text = typeof found === "function" ? String(found) : "[native code]";
        if (!text.includes("[native code]")) own += `${name}.${String(key)}(${text.length}) `;
      }
    }
  }
  return { id: action.id, own, rows: back, caught, odd, names: Object.getOwnPropertyNames(globalThis).sort().join() };
}
