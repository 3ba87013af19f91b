// changes(name): changes of a set since this schedule's last successful run, each once, in order.
const { decode, line, options: checked } = $.wire;
const PAGE = 500;

$.provide("changes", (context, call) => {
  $.instant.calendar(context);
  return async (name, given) => {
    const options = checked("changes", given, ["limit", "from"]);
    const limit = options.limit === undefined ? 100 : options.limit;
    const at = line();
    const found = [];
    let from = options.from;
    let more;
    do {
      const asked = typeof limit === "number" && limit > PAGE ? Math.min(PAGE, limit - found.length) : limit;
      const page = await call("db.changes", { set: name, limit: asked, from, line: at });
      for (const change of page.changes) found.push(decode(change));
      more = page.more;
      from = undefined;
    } while (more && found.length < limit);
    Object.defineProperty(found, "more", { value: more, enumerable: false });
    return found;
  };
});
