// Functions of the platform, such as crm.score(7): a member of the run and a global for each word before the dot.
const { parse, create, slice, indexOf } = $.primordials;

$.functions = (names) => {
  const spaces = create(null);
  for (const name of names) {
    const dot = indexOf(name, ".");
    (spaces[slice(name, 0, dot)] ??= []).push(slice(name, dot + 1));
  }
  for (const space in spaces) {
    $.provide(space, (context, call) => {
      $.instant.calendar(context);
      const made = create(null);
      for (const verb of spaces[space]) {
        made[verb] = async (...args) => parse(await call("functions.call", { name: space + "." + verb, args: $.wire.encode(args), line: $.wire.line() }));
      }
      return new Proxy(Object.freeze(made), {
        get(_, verb) {
          if (typeof verb !== "string" || verb in made || verb === "then" || verb === "toJSON") return made[verb];
          throw new TypeError("the platform has no function " + space + "." + verb + "; it has " + spaces[space].map((each) => space + "." + each).join(", "));
        },
      });
    });
  }
};
