// Tries to reach the other shop's rows in every way that the API leaves open. It finds its own rows only.
export default async function ({ db, action }) {
  const { victim, victimOrder } = action.input;
  const ways = {
    "by key": () => db.orders.get(victimOrder),
    "by shop": () => db.orders.find({ shop: victim }, { limit: 5 }),
    "by or": () => db.orders.find({ or: [{ id: victimOrder }, { id: { lt: 0 } }] }, { limit: 5 }),
    "by count": () => db.customers.count({ id: { lte: 10 } }),
    "by update": () => db.orders.update(victimOrder, { state: "cancelled" }),
    "by code": () => [globalThis.process, globalThis.require].filter(Boolean).length,
  };
  let found = 0;
  const refused = [];
  for (const [name, look] of Object.entries(ways)) {
    try {
      const answer = await look();
      found += Array.isArray(answer) ? answer.length : Number(answer ?? 0);
    } catch (error) {
      refused.push(`${name}: ${error.code ?? error.name}`);
    }
  }
  return { "ways tried": Object.keys(ways).length, "rows of the other shop found": found, refused };
}
