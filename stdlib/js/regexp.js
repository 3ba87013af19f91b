// Regular expressions with the flag v, which an engine without support would ignore: refused when created
// from text. The engine's own reading of the flags decides, so an object that changes its answer cannot bypass it.
const { uncurry, primordials: p } = $;
const { defineProperty } = p;
const { construct } = Reflect;
const { prototype } = RegExp;
const Refusal = SyntaxError;
const match = Symbol.match;
const hasFlagV = uncurry(Object.getOwnPropertyDescriptor(prototype, "unicodeSets").get);
const recompile = uncurry(prototype.compile);

function checked(made) {
  if (hasFlagV(made)) throw new Refusal("runtime quickjs does not support regular expressions with the flag v; use the flag u, without sets and \\q{}");
  return made;
}

if (!new RegExp("\\p{L}", "v").test("a")) {
  const Original = RegExp;
  const Checked = new Proxy(Original, {
    __proto__: null,
    apply(target, self, given) {
      const pattern = given[0];
      const object = (typeof pattern === "object" && pattern !== null) || typeof pattern === "function";
      if (given[1] === undefined && object && pattern[match] && pattern.constructor === Checked) return pattern;
      return checked(construct(target, given));
    },
    construct(target, given, type) {
      return checked(construct(target, given, type));
    },
  });
  $.global("RegExp", Checked);
  defineProperty(prototype, "constructor", { value: Checked, configurable: true, writable: true, enumerable: false });
  const { compile } = {
    compile(pattern, flags) {
      return recompile(this, checked(construct(Original, [pattern, flags])));
    },
  };
  defineProperty(prototype, "compile", { value: compile, configurable: true, writable: true, enumerable: false });
}
