// secrets: handles that the host replaces in the headers of requests; the values stay outside.
const { exec } = $.primordials;
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;

function named(name) {
  if (typeof name !== "string" || exec(NAME, name) === null) throw new TypeError("the name of a secret has only letters, digits and _");
  return name;
}

$.provide("secrets", (context, call) => {
  const own = Object.freeze({
    __proto__: null,
    basic(user, name) {
      const text = `${user}`;
      if (exec(/^[\x20-\x7e\xa0-\xff]{0,128}$/, text) === null || exec(/[{}:]/, text) !== null) throw new TypeError("a user name must be one line without { } and :");
      return "Basic {{basic:" + text + ":" + named(name) + "}}";
    },
    read: (name) => call("secrets.read", { name: named(name) }),
  });
  return new Proxy(own, {
    get(_, name) {
      if (typeof name !== "string" || name === "then" || name === "toJSON") return undefined;
      return name in own ? own[name] : "{{secret:" + named(name) + "}}";
    },
    set() {
      throw new TypeError("secrets cannot be assigned to");
    },
  });
});
