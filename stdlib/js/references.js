// WeakRef as the standard has it: what a job has put into one, or has read from one, stays until that job ends. The engine counts references,
// and would free an object that nothing else holds at once.
const { uncurry, primordials: p } = $;
const { defineProperty } = p;
const { construct } = Reflect;
const { prototype } = WeakRef;
const read = uncurry(prototype.deref);
const then = uncurry(Promise.prototype.then);
const push = uncurry(Array.prototype.push);
const begun = Promise.resolve();
let kept = [];

function keep(value) {
  if (kept.length === 0) then(begun, () => { kept = []; }); // prettier-ignore
  push(kept, value);
  return value;
}

const Keeping = new Proxy(WeakRef, {
  __proto__: null,
  construct(target, given, type) {
    const made = construct(target, given, type);
    keep(given[0]);
    return made;
  },
});
$.global("WeakRef", Keeping);
defineProperty(prototype, "constructor", { value: Keeping, configurable: true, writable: true, enumerable: false });
const { deref } = {
  deref() {
    const found = read(this);
    return found === undefined ? undefined : keep(found);
  },
};
defineProperty(prototype, "deref", { value: deref, configurable: true, writable: true, enumerable: false });
