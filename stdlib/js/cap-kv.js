// kv: JSON values under keys of the tenant; { own: true } for keys of this schedule alone.
const { encode, decode, line, options } = $.wire;
const KEPT = ["ttlSeconds", "own"];

$.provide("kv", (context, call) => {
  $.instant.calendar(context);
  const owned = ({ own }) => (own ? true : undefined);
  const plain = (given) => encode(given === undefined ? null : given);
  const needed = (name, value) => {
    if (value === undefined) throw new TypeError(name + " needs a value, and was given undefined; hand over null for none");
    return encode(value);
  };
  return Object.freeze({
    async get(key, given) {
      return decode(await call("kv.get", { key, own: owned(options("kv.get", given, ["own"])) }));
    },
    set(key, value, given) {
      const asked = options("kv.set", given, KEPT);
      return call("kv.set", { key, value: needed("kv.set", value), ttlSeconds: asked.ttlSeconds, own: owned(asked), line: line() });
    },
    swap(key, expected, value, given) {
      const asked = options("kv.swap", given, KEPT);
      return call("kv.swap", { key, expected: plain(expected), value: needed("kv.swap", value), ttlSeconds: asked.ttlSeconds, own: owned(asked), line: line() });
    },
    delete(key, given) {
      return call("kv.delete", { key, own: owned(options("kv.delete", given, ["own"])), line: line() });
    },
    add(key, amount = 1, given) {
      return call("kv.add", { key, amount, own: owned(options("kv.add", given, ["own"])), line: line() });
    },
    async list(given) {
      const asked = options("kv.list", given, ["prefix", "after", "limit", "own"]);
      return decode(await call("kv.list", { prefix: asked.prefix, after: asked.after, limit: asked.limit, own: owned(asked) }));
    },
  });
});
