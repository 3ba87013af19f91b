// db: the tenant's rows. db.NAME is an exposed table, or a collection of documents, which needs no setting up.
const { encode, encodeFilter, decode, line, options: checked } = $.wire;
const MEASURES = ["groupBy", "sum", "avg", "min", "max"];
const CHOICES = ["order", "limit", "cursor", "include", "select", "offset"];
const OBJECTS = ["order", "groupBy"]; // options that may be objects
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
const PAGE = 500;
const FURTHEST = 10000; // rows that an offset may skip: they are read, while a cursor skips for nothing

const RANKS = ["null", "boolean", "number", "string", "instant"]; // in their order

function compareText(one, other) {
  // By code points, as the host does.
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return (one.codePointAt(at) ?? -1) - (other.codePointAt(at) ?? -1);
}

function reader(datasets, name) {
  // Rows of a table have tags only in columns of such types; documents anywhere.
  if (!Object.hasOwn(datasets, name)) return decode;
  const kinds = datasets[name].columns;
  const links = datasets[name].links || {};
  const tagged = Object.keys(kinds).filter((name) => kinds[name] === "instant" || kinds[name] === "bytes" || kinds[name] === "json");
  return (row) => {
    if (row === null) return row;
    for (const name of tagged) if (name in row) row[name] = decode(row[name]);
    // A referenced row is read as a row of its own set.
    for (const link of Object.keys(links)) if (link in row) row[link] = reader(datasets, links[link])(row[link]);
    return row;
  };
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function member(value, name) {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : null;
}

class Rows {
  #name;
  #call;
  #read;
  #isTable;

  constructor(name, call, datasets) {
    this.#name = name;
    this.#call = call;
    this.#read = reader(datasets, name);
    this.#isTable = Object.hasOwn(datasets, name);
  }

  // Refuses options in the place of the filter, which a field of a document may have for a name: those of a page if nothing else is there.
  // A condition such as { limit: { gt: 100 } } is no option.
  // `between` stands between filter and options.
  #refuseOptions(verb, filter, given, names, between = "") {
    const own = given === undefined && !this.#isTable ? Object.keys(filter ?? {}) : [];
    const asked = own.filter((each) => names.includes(each) && (OBJECTS.includes(each) || !isObject(filter[each])));
    const [name] = asked;
    if (name !== undefined && (names !== CHOICES || asked.length === own.length)) throw new TypeError(`${verb} takes a filter before ${name}: ${verb}({}, ${between}{ ${name}: … }); for a filter by a field named ${name} write ${between}{} after it`);
  }

  #ask(verb, given, filter) {
    return this.#call("db." + verb, { set: this.#name, ...encode(given), filter });
  }

  // Rows that satisfy the filter, in order; `cursor` of the list says where the next page begins, null after the last.
  async find(filter, given) {
    const options = checked("find", given, CHOICES);
    this.#refuseOptions("find", filter, given, CHOICES);
    const asking = encodeFilter(filter);
    const limit = options.limit === undefined ? 100 : options.limit;
    const rows = [];
    let cursor = options.cursor;
    let left = options.offset === undefined ? 0 : options.offset;
    if (!Number.isInteger(left) || left < 0 || left > FURTHEST) throw new RangeError("offset is a whole number from 0 to " + FURTHEST);
    while (left > 0) {
      const page = await this.#ask("find", { order: options.order, limit: Math.min(PAGE, left), cursor, select: [] }, asking);
      left -= page.rows.length;
      cursor = page.cursor;
      if (cursor === null) break;
    }
    if (cursor !== null || !options.offset) do {
      const asked = typeof limit === "number" && limit > PAGE ? Math.min(PAGE, limit - rows.length) : limit;
      const page = await this.#ask("find", { order: options.order, limit: asked, cursor, include: options.include, select: options.select }, asking);
      for (const row of page.rows) rows.push(this.#read(row));
      cursor = page.cursor;
    } while (cursor !== null && rows.length < limit);
    Object.defineProperty(rows, "cursor", { value: cursor, enumerable: false });
    return rows;
  }

  // Every row that satisfies the filter, fetched page by page while the loop runs.
  async *each(filter, given) {
    const options = checked("each", given, ["order", "include", "select"]);
    this.#refuseOptions("each", filter, given, CHOICES);
    let cursor;
    do {
      const rows = await this.find(filter, { ...options, limit: PAGE, cursor });
      yield* rows;
      cursor = rows.cursor;
    } while (cursor !== null);
  }

  // The different values of a column in the rows that satisfy the filter, in order.
  async distinct(column, filter, given) {
    checked("distinct", given, []);
    if (typeof column !== "string") throw new TypeError("distinct takes the name of a column");
    try {
      const groups = await this.aggregate(filter, { groupBy: column });
      return groups.map((group) => group.group[column]);
    } catch (error) {
      if (error.code !== "not_comparable") throw error;
    }
    // The elements of lists, which are read.
    const path = column.split(".");
    const found = new Map();
    for await (const row of this.each(filter, { select: [path[0]] })) {
      let held = [row];
      for (const name of path) held = held.flat().map((value) => member(value, name)).filter((value) => value !== null);
      for (const value of held.length > 0 ? held.flat() : [null]) {
        const rank = RANKS.indexOf(value === null ? "null" : value instanceof Instant ? "instant" : typeof value);
        if (rank < 0) throw new TypeError(`distinct cannot compare the elements of ${column}, which are lists or objects: read the rows with each`);
        const key = RANKS[rank] === "instant" ? value.epochNanoseconds : value;
        found.set(rank + " " + key, [rank, key, value]);
      }
    }
    return [...found.values()].sort(([rank, key], [rank2, key2]) => rank - rank2 || (typeof key === "string" ? compareText(key, key2) : key < key2 ? -1 : 1)).map((each) => each[2]);
  }

  async first(filter, given) {
    this.#refuseOptions("first", filter, given, CHOICES);
    const rows = await this.find(filter, { ...checked("first", given, ["order", "include", "select"]), limit: 1 });
    return rows.length > 0 ? rows[0] : null;
  }

  async get(id, given) {
    const options = checked("get", given, ["check", "include"]);
    return this.#read(await this.#ask("get", { id, check: options.check, include: options.include }));
  }

  async count(filter, given) {
    checked("count", given, []);
    return this.#ask("count", {}, encodeFilter(filter));
  }

  async aggregate(filter, wanted) {
    this.#refuseOptions("aggregate", filter, wanted, MEASURES);
    return decode(await this.#ask("aggregate", checked("aggregate", wanted, MEASURES), encodeFilter(filter)));
  }

  async #measure(measure, column, filter, given) {
    checked(measure, given, []);
    const [all] = await this.aggregate(filter, { [measure]: [column] });
    return all[measure][column];
  }

  sum(column, filter, given) { return this.#measure("sum", column, filter, given); }
  avg(column, filter, given) { return this.#measure("avg", column, filter, given); }
  min(column, filter, given) { return this.#measure("min", column, filter, given); }
  max(column, filter, given) { return this.#measure("max", column, filter, given); }

  insert(values) {
    const at = line();
    return this.#ask("insert", { values, line: at }).then(this.#read);
  }

  insertMany(rows) {
    return this.#ask("insertMany", { rows, line: line() }).then((made) => made.map(this.#read));
  }

  updateMany(filter, changes, given) {
    const { all } = checked("updateMany", given, ["all"]);
    this.#refuseOptions("updateMany", filter, given, ["all"], "changes, ");
    return this.#ask("updateMany", { changes, all, line: line() }, encodeFilter(filter));
  }

  deleteMany(filter, given) {
    const { all } = checked("deleteMany", given, ["all"]);
    this.#refuseOptions("deleteMany", filter, given, ["all"]);
    return this.#ask("deleteMany", { all, line: line() }, encodeFilter(filter));
  }

  upsert(values, given) {
    const { on } = checked("upsert", given, ["on"]);
    return this.#ask("upsert", { values, on, line: line() }).then(this.#read);
  }

  update(id, changes) {
    return this.#ask("update", { id, changes, line: line() });
  }

  increment(id, amounts) {
    return this.#ask("increment", { id, amounts, line: line() });
  }

  delete(id) {
    return this.#ask("delete", { id, line: line() });
  }
}

// Names of other data stores, with those of Rows for the same.
$.others(Rows.prototype, "a set of db", {
  __proto__: null,
  findOne: "first(filter)", findFirst: "first(filter)", findUnique: "first(filter)", one: "first(filter)", findById: "get(id)", findByPk: "get(id)",
  findMany: "find(filter)", findAll: "find(filter)", all: "find(filter)", where: "find(filter)", select: "find(filter, { select })", query: "find(filter)",
  list: "find(filter)", filter: "find(filter)", toArray: "find(filter)", forEach: "each(filter), in `for await`", iterate: "each(filter), in `for await`",
  add: "insert(values)", create: "insert(values)", insertOne: "insert(values)", push: "insert(values)", createMany: "insertMany(rows)", bulkInsert: "insertMany(rows)",
  save: "upsert(values), or update(id, changes)", put: "upsert(values)", set: "update(id, changes)", replace: "update(id, changes)", replaceOne: "update(id, changes)",
  updateOne: "update(id, changes)", patch: "update(id, changes)", findOneAndUpdate: "first(filter) and update(id, changes)", findByIdAndUpdate: "update(id, changes)",
  updateAll: "updateMany(filter, changes)", remove: "delete(id)", destroy: "delete(id)", deleteOne: "delete(id)", del: "delete(id)", removeMany: "deleteMany(filter)",
  deleteAll: "deleteMany(filter, { all: true })", clear: "deleteMany({}, { all: true })", truncate: "deleteMany({}, { all: true })",
  countDocuments: "count(filter)", length: "count()", size: "count()", exists: "count(filter) > 0", has: "count(filter) > 0", groupBy: "aggregate(filter, { groupBy })",
  inc: "increment(id, amounts)", $inc: "increment(id, amounts)", decrement: "increment(id, amounts) with negative numbers",
}); // prettier-ignore

$.provide("db", (context, call) => {
  $.instant.calendar(context);
  const datasets = context.datasets || {};
  const made = Object.create(null);
  return new Proxy(Object.freeze(Object.create(null)), {
    get(_, name) {
      if (typeof name !== "string" || name === "then" || name === "toJSON") return undefined;
      if (!$.primordials.exec(NAME, name)) throw new TypeError("the name of a set has only letters, digits and _");
      if (!(name in made)) {
        made[name] = Object.freeze(new Rows(name, call, datasets));
      }
      return made[name];
    },
    ownKeys: () => Object.keys(datasets),
    getOwnPropertyDescriptor(_, name) {
      return Object.hasOwn(datasets, name) ? { value: this.get(_, name), enumerable: true, configurable: true } : undefined;
    },
    set() {
      throw new TypeError("db cannot be assigned to");
    },
  });
});
