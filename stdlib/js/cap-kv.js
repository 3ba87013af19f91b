// kv: JSON values under keys of the tenant; { own: true } for keys of this schedule alone.
const { encode, decode, line } = $.wire;

$.provide("kv", (context, call) => {
  $.instant.calendar(context);
  const own = (options) => (options !== undefined && options !== null && options.own ? true : undefined);
  return Object.freeze({
    async get(key, options) {
      return decode(await call("kv.get", { key, own: own(options) }));
    },
    set(key, value, options) {
      const ttlSeconds = options === undefined || options === null ? undefined : options.ttlSeconds;
      return call("kv.set", { key, value: encode(value === undefined ? null : value), ttlSeconds, own: own(options), line: line() });
    },
    swap(key, expected, value, options) {
      const ttlSeconds = options === undefined || options === null ? undefined : options.ttlSeconds;
      const plain = (given) => encode(given === undefined ? null : given);
      return call("kv.swap", { key, expected: plain(expected), value: plain(value), ttlSeconds, own: own(options), line: line() });
    },
    delete(key, options) {
      return call("kv.delete", { key, own: own(options), line: line() });
    },
    add(key, amount = 1, options) {
      return call("kv.add", { key, amount, own: own(options), line: line() });
    },
    async list(options = {}) {
      return decode(await call("kv.list", { prefix: options.prefix, after: options.after, limit: options.limit, own: own(options) }));
    },
  });
});
